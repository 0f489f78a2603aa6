#pragma once

/// Steps that are put into the queue of a device without waiting for it, and what they came to, some steps
/// later (engine.h, StepQueue). Why it gives what waiting would give: docs/decisions/queued-steps.md.
///
/// Every rank posts and takes by the same rule, so that all act on the same step at the same time. Reading
/// ahead (read_all) is a rank's own business: what was read is taken at its time all the same.

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "comm/communicator.h"
#include "data/loader.h"
#include "engine/engine.h"
#include "measure/ledger.h"
#include "measure/record.h"
#include "train/buckets.h"
#include "train/exposed_comm.h"
#include "train/job.h"
#include "train/shards.h"
#include "train/votes.h"

namespace paceline::train {

/// Whether the host decides or adds up something inside each step, which is then waited for on any engine:
/// --on-nan skip, --bn sync of several workers, --parallel data-parallel.
[[nodiscard]] bool host_is_in_step(const Options& options, int workers);

/// The queue in which the steps of this run go; null where each step is waited for: there, and on host
/// engines.
[[nodiscard]] engine::StepQueue* queue_of(const Job& job, engine::Engine& engine);

/// What the host knows of a step when it posts it.
struct StepOrder {
  std::int64_t update = 0;  ///< global step, from 0
  double lr = 0;
  bool enough = false;          ///< this rank's vote to end the measured window after this step
  base::TimePoint begin{};      ///< when the host turned to the step,
  base::TimePoint has_batch{};  ///< and when its loader had given the batch
};

/// What became of it.
struct DoneStep {
  StepOrder order;
  std::int64_t epoch = 0;  ///< from 0
  engine::LossSums local;  ///< this worker's samples
  Votes all;               ///< of all ranks
  /// From the end of the step before, or from `order.begin` where the queue was empty, to that of its update.
  base::TimePoint begin{}, end{};
  double blocked_s = 0;  ///< of that, waiting for sums over the ranks
};

/// Buckets of gradients, and behind them the votes: in the last bucket, or `are_apart` in one of their own,
/// which is too small to be rounded where gradients travel as bf16.
[[nodiscard]] Buckets with_votes(Buckets buckets, bool are_apart);

/// Threads  one, the worker's own
class QueuedStepper {
 public:
  QueuedStepper(const Job& job, engine::Engine& engine, engine::StepQueue& queue,
                comm::Communicator& communicator, measure::Ledger& ledger, CollectiveLog& log,
                double bucket_mb);

  /// Puts a step into the queue. Requires: not is_full().
  /// Errors   Error(comm) when a peer is lost
  void post(const data::Batch& batch, const StepOrder& order);

  /// So many steps are posted that the oldest is to be taken before the next is posted.
  [[nodiscard]] bool is_full() const;
  /// All that were posted were taken.
  [[nodiscard]] bool is_empty() const { return posted_.empty() && read_.empty(); }
  /// The oldest; waits for it, not for those behind it. Its times go into ledger and log when it is read.
  [[nodiscard]] DoneStep take();
  /// Waits for all that were posted; they are taken later, in order.
  [[nodiscard]] const std::deque<DoneStep>& read_all();

  /// As Stepper's. The last one has the votes in it.
  [[nodiscard]] const Buckets& buckets() const { return buckets_; }
  /// What the buckets are cut from.
  [[nodiscard]] base::Array array() const { return queue_.gradients_and_votes(); }
  void begin_window(std::vector<measure::BucketRecord>& records, std::size_t steps, bool keeps_ready);

 private:
  struct Posted {
    StepOrder order;
    std::int64_t epoch = 0;
    bool is_first = false;  ///< nothing was in the queue
    std::vector<std::unique_ptr<comm::Pending>> sums;
    std::vector<std::size_t> ready;  ///< buckets that were whole at each mark `bucket`
  };
  void run_passes(const data::Batch& batch, Posted& step);
  /// Gradients in [0, ready) are final: marks the time where a bucket is now whole.
  void mark_ready(std::int64_t ready, Posted& step);
  [[nodiscard]] engine::QueuedStep collect();
  void read();
  void book(const engine::QueuedStep& step, const Posted& posted, DoneStep& done);
  void note_ready(const engine::QueuedStep& step, const Posted& posted);

  const Job& job_;
  engine::Engine& engine_;
  engine::StepQueue& queue_;
  comm::Communicator& communicator_;
  measure::Ledger& ledger_;
  CollectiveLog& log_;
  Buckets buckets_;
  BucketReducer reducer_;
  ShardSums shard_sums_;
  std::deque<Posted> posted_;  ///< and not read
  std::deque<DoneStep> read_;  ///< and not taken
  base::TimePoint last_end_{};
  std::span<measure::BucketRecord> ready_records_;
};

}  // namespace paceline::train

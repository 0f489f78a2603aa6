#pragma once

/// Queues steps on a device without waiting for them, and reads their results some steps later (engine.h,
/// StepQueue). docs/decisions/queued-steps.md says why the results are the same as with waiting.
///
/// Every rank posts and takes steps by the same rule, so all act on the same step at the same time. A rank
/// may read ahead (guard_when_empty) on its own; it still takes the results in their turn.

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "comm/communicator.h"
#include "data/loader.h"
#include "engine/engine.h"
#include "train/given/job.h"
#include "train/step/buckets.h"
#include "train/step/loss_guard.h"
#include "train/step/step.h"

namespace paceline::train {

/// Whether the host takes part in every step, so that each must be waited for on any engine: --on-nan skip,
/// --bn sync of several workers, --parallel data-parallel.
[[nodiscard]] bool host_is_in_step(const Options& options, int workers);

/// The queue for the steps of this run; null if each step is waited for: in the cases above, and on host
/// engines.
[[nodiscard]] engine::StepQueue* queue_of(const Job& job, engine::Engine& engine);

/// Buckets of gradients followed by the votes: in the last bucket, or if `are_apart` in a bucket of their
/// own, which is too small to be rounded when gradients are sent as bf16.
[[nodiscard]] Buckets with_votes(Buckets buckets, bool are_apart);

/// Threads  one, the worker's own
class QueuedStepper final : public StepRunner {
 public:
  QueuedStepper(const StepContext& in, engine::StepQueue& queue, double bucket_mb);

  /// With the votes in the last one.
  [[nodiscard]] const Buckets* buckets() const override { return &buckets_; }
  [[nodiscard]] base::Array array() const override { return queue_.gradients_and_votes(); }
  [[nodiscard]] std::int64_t vote_bytes() const override;
  const data::Batch& next_batch(data::Loader* loader, const Counters& done, StepOrder& order) override;
  void post(const data::Batch& batch, const StepOrder& order) override;
  [[nodiscard]] bool is_full() const override;
  [[nodiscard]] bool is_empty() const override { return posted_.empty() && read_.empty(); }
  /// Waits for the oldest step, not for later ones. Its times are added to ledger and log when it is read.
  [[nodiscard]] TakenStep take() override;
  [[nodiscard]] TakenStep drop() override;
  /// Reads all posted steps; they are taken later, in order.
  [[nodiscard]] std::optional<GuardState> guard_when_empty() override;

 private:
  struct Posted {
    StepOrder order;
    std::int64_t epoch = 0;
    bool is_first = false;  ///< the queue was empty
    std::vector<std::unique_ptr<comm::Pending>> sums;
    std::vector<std::size_t> ready;  ///< number of complete buckets at each mark `bucket`
  };
  void run_passes(const data::Batch& batch, Posted& step);
  /// Gradients in [0, ready) are final: sets a time mark if another bucket is now complete.
  void mark_ready(std::int64_t ready, Posted& step);
  [[nodiscard]] engine::QueuedStep collect();
  void read();
  void book(const engine::QueuedStep& step, const Posted& posted, TakenStep& done);
  void note_ready(const engine::QueuedStep& step, const Posted& posted);

  const SquaresSchedule squares_;
  engine::StepQueue& queue_;
  Buckets buckets_;
  BucketReducer reducer_;
  ShardSums shard_sums_;
  std::deque<Posted> posted_;   ///< posted, not read
  std::deque<TakenStep> read_;  ///< read, not taken
  base::TimePoint last_end_{};
};

}  // namespace paceline::train

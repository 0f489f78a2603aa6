#pragma once

/// The way in which the steps of a run are done: waited for one by one (step.h), put into a device's queue
/// (queued_steps.h), or with one worker in the middle (data_parallel.h). All are posted and taken; of one
/// that is waited for, posting is doing it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "comm/communicator.h"
#include "data/loader.h"
#include "engine/engine.h"
#include "measure/ledger.h"
#include "measure/record.h"
#include "train/data_parallel.h"
#include "train/exposed_comm.h"
#include "train/job.h"
#include "train/loss_guard.h"
#include "train/queued_steps.h"
#include "train/step.h"

namespace paceline::train {

/// A step that was done.
struct TakenStep {
  StepOrder order;
  std::int64_t epoch = 0;  ///< from 0
  StepResult result;
  base::TimePoint begin{};
  std::optional<base::TimePoint> end = {};  ///< nothing: it goes on until the worker is through with it
  double blocked_s = 0;                     ///< of a queued one: waiting for sums over the ranks
};

/// Threads  one, the worker's own
class StepRunner {
 public:
  /// `notes`: how buckets were cut, where that was measured. Collective.
  StepRunner(const Job& job, engine::Engine& engine, comm::Communicator& communicator,
             measure::Ledger& ledger, CollectiveLog& log, LossGuard& guard, std::vector<std::string>& notes);

  /// Collectives of a step, the same on every rank.
  [[nodiscard]] std::size_t collectives() const;
  /// The bandwidth of all-reduces of this run's buckets by themselves; 0 where there are none. Collective.
  [[nodiscard]] double allreduce_peak() const;
  /// Makes `records` one a bucket (step.h).
  void begin_window(std::vector<measure::BucketRecord>& records, std::size_t steps, bool keeps_ready);

  /// The batch of the step after `done`, from `loader`, which only worker 0 has where it hands batches out;
  /// fills in order.begin and order.has_batch. Valid until the next call.
  [[nodiscard]] const data::Batch& next_batch(data::Loader* loader, const Counters& done, StepOrder& order);
  /// Requires: not is_full(). Errors: Error(comm) when a peer is lost
  void post(const data::Batch& batch, const StepOrder& order);
  /// The oldest step is to be taken before the next is posted.
  [[nodiscard]] bool is_full() const { return queued_ ? queued_->is_full() : waited_.has_value(); }
  [[nodiscard]] bool is_empty() const { return queued_ ? queued_->is_empty() : !waited_; }
  /// The oldest step; the guard has seen its loss.
  [[nodiscard]] TakenStep take();
  /// The oldest step, whose loss is nobody's concern any more.
  [[nodiscard]] TakenStep drop();
  /// The guard as it will be when all steps are taken; nothing where one of them ends the training. Waits for
  /// them.
  [[nodiscard]] std::optional<GuardState> guard_when_empty();

 private:
  const Job& job_;
  engine::Engine& engine_;
  comm::Communicator& communicator_;
  measure::Ledger& ledger_;
  LossGuard& guard_;
  // One of these:
  std::optional<Stepper> stepper_;
  std::optional<QueuedStepper> queued_;
  std::optional<DataParallelStepper> data_parallel_;
  std::optional<TakenStep> waited_;  ///< posted, and not taken
};

}  // namespace paceline::train

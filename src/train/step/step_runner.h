#pragma once

/// Runs the steps of a training in one of three ways: waited for one by one (step.h), queued on a device
/// (queued_steps.h), or with all data passing worker 0 (data_parallel.h). In each way steps are posted and
/// taken; a step that is waited for is done when it is posted. Here --bucket auto chooses its size too.

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
#include "train/given/job.h"
#include "train/record/gather.h"
#include "train/step/buckets.h"
#include "train/step/data_parallel.h"
#include "train/step/exposed_comm.h"
#include "train/step/loss_guard.h"
#include "train/step/queued_steps.h"
#include "train/step/step.h"

namespace paceline::train {

// --bucket auto: chooses the bucket size from the measured cost of a reduction.

struct BucketChoice {
  double megabytes = 0;  ///< 1e6 bytes
  std::string why;       ///< one sentence with the measured numbers
};

/// The size that exposes least of a gradient of X bytes, if a reduction takes latency + bytes / bandwidth.
/// With buckets of s bytes there are X/s latencies, and s / bandwidth of the last bucket is left after the
/// backward pass; the sum is least at s = sqrt(X latency bandwidth). At least a hundredth of the gradient, at
/// most all of it. A pure function.
[[nodiscard]] BucketChoice best_bucket(double gradient_bytes, double latency_s, double bytes_per_s);

/// The same with measured latency and bandwidth: reductions of 64 KiB and of all of `gradients`, which are
/// set to zero. Every rank gets the same answer. Collective, over more than one rank.
///
/// Cost     five all-reduces of the whole gradient
[[nodiscard]] BucketChoice choose_bucket(comm::Communicator& communicator, base::Array gradients);

/// The bucket size of a run in 1e6 bytes: the option's value, or with --bucket auto the measured choice, with
/// a note. Collective.
[[nodiscard]] double bucket_mb(const Job& job, comm::Communicator& communicator, engine::Engine& engine,
                               std::vector<std::string>& notes);

/// busbw in GB/s of reducing all `buckets` of `gradients` one after another while nothing else runs: the
/// median of several times. (Reducing one bucket repeatedly would stay in the cache and give a figure that no
/// step can reach.) Collective, over more than one rank.
///
/// Shapes   gradients [all buckets' floats], set to zero
/// Cost     six all-reduces of the whole gradient
[[nodiscard]] double allreduce_peak(comm::Communicator& communicator, const Buckets& buckets,
                                    base::Array gradients);

/// A step that was done.
struct TakenStep {
  StepOrder order;
  std::int64_t epoch = 0;  ///< from 0
  StepResult result;
  base::TimePoint begin{};
  std::optional<base::TimePoint> end = {};  ///< nothing: it lasts until the worker has dealt with it
  double blocked_s = 0;                     ///< of a queued step: waiting for sums over the ranks
};

/// Threads  one, the worker's own
class StepRunner {
 public:
  /// Adds to `notes` how the bucket size was measured, if it was. Collective.
  StepRunner(const Job& job, engine::Engine& engine, comm::Communicator& communicator,
             measure::Ledger& ledger, CollectiveLog& log, LossGuard& guard, std::vector<std::string>& notes);

  /// Collectives per step, the same on every rank.
  [[nodiscard]] std::size_t collectives() const;
  /// Fills in `gradient_bytes` and `vote_bytes`.
  void fill_in_bytes(WorkerResult& result) const;
  /// The bandwidth of this run's all-reduces alone; 0 if there are none. Collective.
  [[nodiscard]] double allreduce_peak() const;
  /// Makes one record per bucket in `records` (step.h).
  void begin_window(std::vector<measure::BucketRecord>& records, std::size_t steps, bool keeps_ready);

  /// The batch of the step after `done`, from `loader` (with --parallel data-parallel only worker 0 has one).
  /// Fills in order.begin and order.has_batch. Valid until the next call.
  [[nodiscard]] const data::Batch& next_batch(data::Loader* loader, const Counters& done, StepOrder& order);
  /// Posts a step.
  ///
  /// Requires  not is_full()
  /// Errors    Error(comm) when a peer is lost
  void post(const data::Batch& batch, const StepOrder& order);
  /// Whether the oldest step must be taken before the next is posted.
  [[nodiscard]] bool is_full() const { return queued_ ? queued_->is_full() : waited_.has_value(); }
  [[nodiscard]] bool is_empty() const { return queued_ ? queued_->is_empty() : !waited_; }
  /// Returns the oldest step, after the guard has judged its loss.
  [[nodiscard]] TakenStep take();
  /// Returns the oldest step without judging its loss.
  [[nodiscard]] TakenStep drop();
  /// The guard's state after all posted steps, for which it waits; nothing if one of them ends the training.
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
  std::optional<TakenStep> waited_;  ///< posted, not taken
};

}  // namespace paceline::train

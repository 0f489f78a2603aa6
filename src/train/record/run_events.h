#pragma once

/// Reports the progress of a training to the screen (Progress) and as events. Only rank 0 of the first
/// process does; for other ranks every call does nothing.

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "measure/events.h"
#include "measure/record.h"
#include "train/given/job.h"

namespace paceline::train {

/// The global batch of a step.
struct BatchNames {
  std::int64_t epoch = 0, step = 0;   ///< from 1
  std::vector<std::int64_t> samples;  ///< indices in the training set, in the order of the workers
};

/// The global batch of the step after `update` updates.
///
/// Cost     a few hashes per sample; too much for every step
[[nodiscard]] BatchNames batch_of(const Job& job, std::int64_t update);

/// "the batch of step 3 of epoch 2 (training samples 12, 7, 90, ...)", with the first eight samples.
[[nodiscard]] std::string sentence(const BatchNames& batch);

/// Threads  one, the worker's own
class RunEvents {
 public:
  RunEvents(const Job& job, bool is_root) : job_(job), is_root_(is_root) {}

  /// Reports a step. Writes an event for the first step and then at most one a second, each about all steps
  /// since the one before; images/s is their mean.
  ///
  /// Cost     a look at the clock; once a second a line of a file, outside the step's own time
  struct Step {
    std::int64_t update = 0;  ///< updates done
    std::int64_t epoch = 0;   ///< from 1
    double loss = 0;          ///< mean of the epoch so far, of rank 0's samples
    double lr = 0;
    double seconds = 0;
  };
  void step(const Step& step);
  /// Reports an epoch after its evaluation and its checkpoint. `is_first`: of this run.
  void epoch(const measure::EpochRecord& epoch, bool is_first);
  /// The held-back test set was evaluated, with the weights of update `updates`.
  void tested(const measure::TestSetRecord& result, std::int64_t updates);
  /// The update after `updates` - 1 was skipped; `what` describes its loss.
  void skipped(std::int64_t updates, const std::string& what, const BatchNames& batch,
               const GuardState& state);
  /// The training diverged; `batch` is the first one with a bad loss.
  void diverged(std::int64_t updates, const std::string& what, const BatchNames& batch);
  /// The training continues from where it has gone back to.
  void rolled_back(const measure::RollbackRecord& rollback, const TrainingState& at);

 private:
  [[nodiscard]] bool is_told() const { return is_root_ && job_.progress.event; }

  const Job& job_;
  const bool is_root_;
  base::TimePoint last_{};
  std::int64_t steps_ = 0;  ///< since the last event
  double seconds_ = 0;      ///< duration of these steps
};

/// "start": what is trained and how, from the initial `record`.
[[nodiscard]] measure::Event start_event(const measure::Record& record, const Resolved& resolved);
/// "resume": the training continues from a checkpoint.
[[nodiscard]] measure::Event resume_event(const ResumePoint& resume);
/// "checkpoint": `file`, a name in --out, is on disk.
[[nodiscard]] measure::Event checkpoint_event(std::int64_t updates, const std::string& file, bool is_best);
/// "end": how the run ended. `seconds`: since the command began.
[[nodiscard]] measure::Event end_event(const measure::Record& record, double seconds);

}  // namespace paceline::train

#pragma once

/// The evaluations of a training with --evaluate-steps or --target, and whether one reached the target.

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "measure/record.h"
#include "train/given/options.h"

namespace paceline::train {

/// Whether the record of a training has its evaluations.
[[nodiscard]] inline bool keeps_evaluations(const Options& options) {
  return options.target || options.evaluate_steps > 0;
}

/// The evaluations so far, those of earlier runs of the training included.
///
/// Threads  rank 0's adds, and the thread that writes records reads
class EvaluationLog {
 public:
  /// `earlier` and `epochs`: of the runs before this one, which begins after `from` updates. What they have
  /// of later updates is done again.
  EvaluationLog(std::vector<measure::EvaluatedUpdateRecord> earlier,
                std::span<const measure::EpochRecord> epochs, std::int64_t from);

  /// Adds an evaluation after all earlier ones; `seconds` are of training in this run until then.
  void add(measure::EvaluatedUpdateRecord evaluation, double seconds);
  /// The training goes back to `update`: forgets later evaluations, and the time, which is counted no longer.
  void go_back(std::int64_t update);

  [[nodiscard]] std::int64_t from() const { return from_; }
  [[nodiscard]] std::vector<measure::EvaluatedUpdateRecord> all() const;
  [[nodiscard]] bool has(std::int64_t update) const;
  /// The first evaluation that reached the target of `options`; none if there is no target.
  [[nodiscard]] std::optional<measure::EvaluatedUpdateRecord> first_at_target(const Options& options) const;

 private:
  const std::int64_t from_;
  mutable std::mutex mutex_;
  std::vector<measure::EvaluatedUpdateRecord> all_;
  std::optional<double> seconds_before_;  ///< of training until this run; none: not known
};

/// Fills in Record::evaluations and Record::target, as far as the options have them.
void tell_evaluations(measure::Record& record, const Options& options, const EvaluationLog& log);
/// "the target accuracy=0.97 was reached after 340 updates (43520 samples)", or that it was not; "" without
/// one.
[[nodiscard]] std::string sentence_on_target(const measure::Record& record);

/// Says when the target is reached: on every rank after the same evaluation, since all have its figures.
///
/// Threads  one, the worker's own
class TargetWatch {
 public:
  /// Rank 0 writes to the log.
  TargetWatch(const Options& options, std::int64_t global_batch, EvaluationLog& log, bool is_root)
      : options_(options), global_batch_(global_batch), log_(log), is_root_(is_root) {}

  /// A run that begins where an earlier one had reached it, or had not.
  void resume(bool is_reached) { is_reached_ = is_reached; }
  /// After the evaluation of `epoch`, which is not among the `epochs` of this run yet.
  void see(const measure::EpochRecord& epoch, std::span<const measure::EpochRecord> epochs);
  /// The training went back to `update`.
  void go_back(std::int64_t update);
  [[nodiscard]] bool is_reached() const { return is_reached_; }

 private:
  const Options& options_;
  const std::int64_t global_batch_;
  EvaluationLog& log_;
  const bool is_root_;
  bool is_reached_ = false;
};

}  // namespace paceline::train

#pragma once

/// Reference curves: how many epochs trainings need to an accuracy, by batch, in the form of MLPerf's
/// reference convergence points; and whether other trainings need as many.
///
/// Where the steps to an accuracy follow S(B) = S_min (1 + B_c / B), epochs B S(B) / D rise linearly with the
/// batch B. So a batch between two of a reference has the epochs on the straight line between them, as in
/// MLPerf's rules.
///
/// Each batch is judged by a one-sided test of Welch for either direction. More epochs than the reference are
/// a regression. Fewer are suspicious: most often the training saw less data, or was evaluated on images that
/// it was trained with. Where there are too few runs, or the batch lies outside the reference's, nothing is
/// decided, and it is said why.
///
/// Source   MLPerf's reference convergence points: github.com/mlcommons/logging, mlperf_logging/rcp_checker

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "measure/record.h"
#include "measure/setting.h"

namespace paceline::analysis {

// What MLPerf's forms (reference convergence points, and the log of report --mllog) call the parts of a
// record.

using Hyperparameter = std::pair<std::string, std::variant<std::int64_t, double, std::string>>;
/// "opt_name", "opt_base_learning_rate" and others, in the order of the log.
[[nodiscard]] std::vector<Hyperparameter> mlperf_hyperparameters(const measure::Record& record);
[[nodiscard]] std::string mlperf_benchmark(const measure::Record& record);  ///< "mnist-cnn on mnist"
[[nodiscard]] std::string mlperf_platform(const measure::Record& record);   ///< "2 x Example CPU"
/// The number in this setting; 0 if it holds none, such as "auto".
[[nodiscard]] double number_of_setting(const measure::Record& record, measure::Setting setting);
/// Forward passes of a worker in a step: of shards or micro-batches, else 1.
[[nodiscard]] std::int64_t passes_of_step(const measure::Record& record);

/// A check judges at least so many runs a batch, and a reference has at least twice as many.
inline constexpr int kFewestRuns = 3;
/// How often a check of sound trainings says "slower", and how often "faster", whatever number of batches it
/// judges.
inline constexpr double kFalseAlarms = 0.05;

/// The accuracy to be reached, and whose it is.
struct AccuracyTarget {
  double accuracy = 0;
  /// Of the validation set; none: of the test set if the epochs were tested, else of the validation set.
  std::optional<bool> of_validation;
  bool operator==(const AccuracyTarget&) const = default;
};

/// A training that ended without the accuracy.
struct UnreachedRun {
  std::string id;
  double trained = 0;  ///< epochs
  bool has_failed = false;
};

/// All trainings with one global batch.
struct BatchRuns {
  std::int64_t batch = 0;
  const measure::Record* record = nullptr;  ///< the first of them
  std::vector<double> epochs;  ///< until the accuracy was first seen, of each run that reached it
  std::vector<UnreachedRun> unreached;
  double evaluated_every = 0;  ///< epochs between evaluations, at most
  [[nodiscard]] int runs() const { return static_cast<int>(epochs.size() + unreached.size()); }
};

struct RunsToAccuracy {
  AccuracyTarget target;
  std::vector<BatchRuns> batches;     ///< ascending
  std::vector<std::string> not_used;  ///< which records were left out, and why: sentences
};

/// A seed counts once. Lifetime: that of the records.
///
/// Errors   Error(data): no record is of a whole training with such accuracies; two models, data sets, or
///          rules of training at one batch
[[nodiscard]] RunsToAccuracy runs_to_accuracy(std::span<const measure::Record> records,
                                              const AccuracyTarget& target);

/// One batch of a reference.
struct ReferencePoint {
  std::string benchmark, creator, when, platform;
  std::int64_t batch = 0;
  std::vector<Hyperparameter> hyperparameters;  ///< only written
  std::vector<double> epochs;                   ///< to converge, of each run
  // Beyond MLPerf's form; 0 or empty in files of others.
  double evaluated_every = 0;  ///< epochs
  std::int64_t train_samples = 0, test_samples = 0;
  measure::SettingTexts settings;  ///< of the rule of training
};

struct ReferenceCurve {
  std::optional<AccuracyTarget> target;  ///< none: the file is another program's
  std::vector<ReferencePoint> points;    ///< ascending batches, each once
};

/// `creator`: who made it, for MLPerf's form.
///
/// Errors   Error(data): a batch has too few runs, or some that did not reach the accuracy
[[nodiscard]] ReferenceCurve reference_curve(const RunsToAccuracy& runs, const std::string& creator);

[[nodiscard]] std::string to_json(const ReferenceCurve& curve);
/// Also reads MLPerf's own files. `where`: the file, for messages.
///
/// Errors   Error(data): it has another form, or a batch twice
[[nodiscard]] ReferenceCurve reference_from_json(const std::string& text, const std::string& where);

enum class ReferenceVerdict : std::uint8_t { as_reference, slower, faster, not_decided };

/// One batch of a check.
struct ReferenceCheck {
  std::int64_t batch = 0;
  ReferenceVerdict verdict = ReferenceVerdict::not_decided;
  int runs = 0;                       ///< that are judged
  int reference_runs = 0;             ///< of the reference's batch; of two batches the fewer
  std::int64_t below = 0, above = 0;  ///< batches of the reference around it; equal: it has this batch
  double epochs = 0;         ///< mean over the runs; a run that did not reach the accuracy counts as one that
                             ///< reaches it at its next evaluation
  double reference = 0;      ///< mean
  double low = 0, high = 0;  ///< of epochs - reference: the bounds of the two one-sided tests
  std::string not_decided;   ///< why nothing is decided: a sentence
  std::vector<std::string>
      remarks;  ///< what differs from the reference, and what explains the verdict: sentences
};

/// The runs' batches in their order.
///
/// Requires  `runs` are to the curve's target, if that is known
///
/// Errors   Error(data): another model or data set than the reference's
[[nodiscard]] std::vector<ReferenceCheck> check_against(const ReferenceCurve& curve,
                                                        const RunsToAccuracy& runs);

}  // namespace paceline::analysis

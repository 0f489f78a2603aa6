#include "analysis/trainings/reference_curve.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analysis/compare/cell.h"
#include "analysis/compare/consistency.h"
#include "base/error.h"
#include "base/text.h"
#include "measure/statistics.h"

namespace paceline::analysis {
namespace {

using measure::EpochRecord;
using measure::Record;
using measure::SettingRole;

constexpr const char* kSetOf[] = {"test set", "validation set"};

/// The accuracy after so many epochs.
struct EvaluatedEpoch {
  double epochs = 0, accuracy = 0;
};

std::vector<EvaluatedEpoch> evaluations_of(const Record& record, bool of_validation) {
  std::vector<EvaluatedEpoch> evaluations;
  // Those inside epochs too (--evaluate-steps), which are of the validation set if there is one.
  if (record.evaluations && !record.evaluations->empty() && record.data.steps_per_epoch > 0 &&
      of_validation == (record.data.validation_samples.value_or(0) > 0)) {
    for (const auto& one : *record.evaluations)
      evaluations.push_back(
          {.epochs = static_cast<double>(one.update) / static_cast<double>(record.data.steps_per_epoch),
           .accuracy = one.accuracy});
    return evaluations;
  }
  for (const EpochRecord& epoch : record.epochs)
    if (const auto& accuracy = of_validation ? epoch.validation_accuracy : epoch.test_accuracy)
      evaluations.push_back({.epochs = epochs_done(record, epoch), .accuracy = *accuracy});
  return evaluations;
}

/// The settings of how it was trained, for a comparison with others that need not have the same device or the
/// same path of the data.
measure::SettingTexts settings_of_rule(const Record& record) {
  measure::SettingTexts rule;
  for (const auto& [key, text] : record.settings) {
    const auto role = measure::role_of(key);
    const bool is_of_rule = role == SettingRole::fixed || role == SettingRole::remedy ||
                            role == SettingRole::rule || role == SettingRole::lr_scaling ||
                            role == SettingRole::length;
    if (is_of_rule && key != "model" && key != "data" && key != "device") rule.emplace(key, text);
  }
  return rule;
}

/// "lr 0.2 (there 0.1)" for each that differs. `is_fixed_alone`: without what a tuned batch has of its own.
std::vector<std::string> different_rules(const measure::SettingTexts& here,
                                         const measure::SettingTexts& there, bool is_fixed_alone) {
  std::vector<std::string> different;
  for (const auto& [key, text, other] : different_settings(here, there)) {
    const auto role = measure::role_of(key);
    if (is_fixed_alone && role != SettingRole::fixed && role != SettingRole::remedy) continue;
    different.push_back(
        fmt::format("{} {} (there {})", key, text_or(text, "not given"), text_or(other, "not given")));
  }
  return different;
}

/// Why its epochs are not used; "" if they are.
std::string why_not_used(const Record& record, const AccuracyTarget& target) {
  if (const auto wrong = contradiction(record)) return *wrong;
  if (record.loss) return "a rank was lost";
  if (!record.epochs.empty() && record.epochs.front().epoch != 1) return "its record lacks its first epochs";
  const bool has_ended = record.status == "complete" || record.status == "failed";
  const auto has_reached = [&](const EvaluatedEpoch& one) { return one.accuracy >= target.accuracy; };
  if (!has_ended && std::ranges::none_of(evaluations_of(record, *target.of_validation), has_reached))
    return fmt::format("it is {}, before it reached the accuracy", record.status);
  return "";
}

/// Adds the epochs until the accuracy, or the run as one that did not reach it.
void add_run(BatchRuns& runs, const Record& record, const AccuracyTarget& target) {
  double last = 0;
  for (const auto& [epochs, accuracy] : evaluations_of(record, *target.of_validation)) {
    runs.evaluated_every = std::max(runs.evaluated_every, epochs - last);
    last = epochs;
    if (accuracy < target.accuracy) continue;
    runs.epochs.push_back(epochs);
    return;
  }
  runs.unreached.push_back({.id = record.id,
                            .trained = record.epochs.empty() ? 0 : epochs_done(record, record.epochs.back()),
                            .has_failed = record.status == "failed"});
}

/// "train-r3 ended after 12 epochs"
std::string end_of(const UnreachedRun& run) {
  return fmt::format("{} {} after {:g} epochs", run.id, run.has_failed ? "failed" : "ended", run.trained);
}

void require_same_rule(const Record& first, const Record& other) {
  const auto different = different_rules(settings_of_rule(other), settings_of_rule(first), false);
  if (!different.empty())
    base::fail(base::ErrorKind::data,
               "{} and {} have the batch {}, but were not trained alike: {}; give the records of one rule",
               first.id, other.id, first.global_batch, fmt::join(different, ", "));
  if (first.data.train_samples != other.data.train_samples ||
      first.data.test_samples != other.data.test_samples)
    base::fail(base::ErrorKind::data,
               "{} has {} images to train and {} to test, {} has {} and {}; give the records of one data set",
               first.id, first.data.train_samples, first.data.test_samples, other.id,
               other.data.train_samples, other.data.test_samples);
}

/// The whole trainings with accuracies of this set, or that failed before they had any; none if all failed.
std::vector<const Record*> trainings_to(std::span<const Record> records, bool of_validation) {
  std::vector<const Record*> found;
  bool has_any = false;
  for (const Record& record : records) {
    const bool is_whole = record.kind == "train" || record.kind == "converge" || record.kind == "search";
    const bool is_evaluated = !evaluations_of(record, of_validation).empty();
    if (is_evaluated || (is_whole && record.status == "failed")) found.push_back(&record);
    has_any = has_any || is_evaluated;
  }
  return has_any ? found : std::vector<const Record*>();
}

// --- the check

/// A mean over runs: its variance, and the degrees of freedom of that.
struct MeanOfRuns {
  double mean = 0, variance = 0, degrees = 1;
};

/// An accuracy is seen at the next evaluation, so a spread below that of rounding shows only that all were
/// rounded alike.
MeanOfRuns mean_of_runs(std::span<const double> epochs, double evaluated_every) {
  const auto n = static_cast<double>(epochs.size());
  const double rounding = evaluated_every * evaluated_every / 12;
  return {.mean = measure::mean(epochs),
          .variance = std::max(variance(epochs), rounding) / n,
          .degrees = std::max(1.0, n - 1)};
}

/// The two points of the reference around a batch; both are the same where it has this batch.
struct PointsAround {
  const ReferencePoint *below = nullptr, *above = nullptr;
  /// Of `above`.
  [[nodiscard]] double weight(std::int64_t batch) const {
    if (below == above) return 0;
    return static_cast<double>(batch - below->batch) / static_cast<double>(above->batch - below->batch);
  }
};

std::optional<PointsAround> points_around(const ReferenceCurve& curve, std::int64_t batch) {
  const auto above = std::ranges::lower_bound(curve.points, batch, {}, &ReferencePoint::batch);
  if (above == curve.points.end()) return std::nullopt;
  if (above->batch == batch) return PointsAround{&*above, &*above};
  if (above == curve.points.begin()) return std::nullopt;
  return PointsAround{&*(above - 1), &*above};
}

/// Why these runs cannot be judged; "" if they can.
std::string why_not_judged(const PointsAround& points, const BatchRuns& runs) {
  if (runs.runs() < kFewestRuns)
    return fmt::format("{} at batch {}: a check needs at least {}, with other seeds",
                       base::counted(runs.runs(), "run"), runs.batch, kFewestRuns);
  for (const auto* point : {points.below, points.above}) {
    const auto has = static_cast<int>(point->epochs.size());
    if (has < 2 * runs.runs())
      return fmt::format("the reference has {} at batch {}, and a check of {} needs {} there: {}",
                         base::counted(has, "run"), point->batch, runs.runs(), 2 * runs.runs(),
                         has / 2 >= kFewestRuns
                             ? fmt::format("check {}, or make the reference of more", has / 2)
                             : "make the reference of more");
    if (point->evaluated_every > 0 && std::abs(point->evaluated_every - runs.evaluated_every) > 1e-6)
      return fmt::format(
          "the accuracy was looked at every {:.3g} epochs, and every {:.3g} for the reference at batch {}: who looks less "
          "often sees it later; give both the same --evaluate-every "
          "and --evaluate-steps",
          runs.evaluated_every, point->evaluated_every, point->batch);
  }
  return "";
}

/// The epochs of all runs. One that did not reach the accuracy might do so at its next evaluation; one that
/// failed has at least the most epochs of the reference.
std::vector<double> epochs_at_least(const BatchRuns& runs, const PointsAround& points) {
  auto epochs = runs.epochs;
  for (const auto& run : runs.unreached) {
    double least = run.trained + runs.evaluated_every;
    if (run.has_failed)
      for (const auto* point : {points.below, points.above})
        least = std::max(least, *std::ranges::max_element(point->epochs));
    epochs.push_back(least);
  }
  return epochs;
}

/// The two tests of a batch, each with this share of false alarms.
void judge(ReferenceCheck& check, const PointsAround& points, const BatchRuns& runs, double false_alarms) {
  const auto here = mean_of_runs(epochs_at_least(runs, points), runs.evaluated_every);
  const double weight = points.weight(runs.batch);
  double variance = here.variance, unsure = here.variance * here.variance / here.degrees;
  const auto add = [&](const ReferencePoint& point, double share) {
    const auto there = mean_of_runs(point.epochs, runs.evaluated_every);
    const double part = share * share * there.variance;
    check.reference += share * there.mean;
    variance += part;
    unsure += part * part / there.degrees;
  };
  add(*points.below, 1 - weight);
  if (weight > 0) add(*points.above, weight);
  check.epochs = here.mean;
  const double difference = check.epochs - check.reference;
  const double degrees = unsure > 0 ? variance * variance / unsure : here.degrees;
  const double half = measure::student_quantile(1 - false_alarms, degrees) * std::sqrt(variance);
  check.low = difference - half;
  check.high = difference + half;
  check.verdict = check.low > 0    ? ReferenceVerdict::slower
                  : check.high < 0 ? ReferenceVerdict::faster
                                   : ReferenceVerdict::as_reference;
  if (runs.unreached.empty() || check.verdict == ReferenceVerdict::slower) return;
  check.verdict = ReferenceVerdict::not_decided;
  check.not_decided =
      fmt::format("{} of {} did not reach the accuracy: {}; train longer", runs.unreached.size(),
                  base::counted(runs.runs(), "run"), end_of(runs.unreached.front()));
}

std::string samples_text(const char* what, std::int64_t here, std::int64_t there) {
  return fmt::format("it has {} images to {}, the reference {}", here, what, there);
}

/// What differs from the reference, and what may explain a verdict.
std::vector<std::string> remarks_on(const PointsAround& points, const BatchRuns& runs,
                                    const AccuracyTarget& target) {
  const auto& point = *points.below;
  const auto& data = runs.record->data;
  std::vector<std::string> remarks;
  if (point.train_samples > 0 && point.train_samples != data.train_samples)
    remarks.push_back(samples_text("train", data.train_samples, point.train_samples));
  if (point.test_samples > 0 && point.test_samples != data.test_samples)
    remarks.push_back(samples_text("test", data.test_samples, point.test_samples));
  if (data.lists_sha256) {
    const auto& lists = *data.lists_sha256;
    const auto trained = lists.find("train");
    const auto evaluated = lists.find(*target.of_validation ? "validation" : "test");
    if (trained != lists.end() && evaluated != lists.end() && trained->second == evaluated->second)
      remarks.push_back(fmt::format("its {} holds the very images that it was trained with",
                                    kSetOf[*target.of_validation ? 1 : 0]));
  }
  if (point.settings.empty()) return remarks;
  const auto different =
      different_rules(settings_of_rule(*runs.record), point.settings, points.below != points.above);
  if (!different.empty())
    remarks.push_back(fmt::format("it was not trained as the reference: {}", fmt::join(different, ", ")));
  return remarks;
}

}  // namespace

RunsToAccuracy runs_to_accuracy(std::span<const Record> records, const AccuracyTarget& target) {
  RunsToAccuracy result{.target = target};
  auto& of_validation = result.target.of_validation;
  // With --test-set last only the last epoch was tested, and the epochs' accuracies are those of validation.
  const auto is_validated = [](const Record& record) { return !evaluations_of(record, true).empty(); };
  if (!of_validation) of_validation = std::ranges::any_of(records, is_validated);
  const auto trainings = trainings_to(records, *of_validation);
  if (trainings.empty())
    base::fail(base::ErrorKind::data,
               "none of the {} is a training whose epochs have an accuracy on the {}; train and converge "
               "write such records",
               base::counted(static_cast<std::int64_t>(records.size()), "record"),
               kSetOf[*of_validation ? 1 : 0]);
  std::map<std::int64_t, BatchRuns> batches;
  std::set<std::pair<std::int64_t, std::string>> seeds;
  for (const Record* record : trainings) {
    const auto& first = *trainings.front();
    if (mlperf_benchmark(*record) != mlperf_benchmark(first))
      base::fail(base::ErrorKind::data, "{} trains {}, {} trains {}; give the records of one of them",
                 first.id, mlperf_benchmark(first), record->id, mlperf_benchmark(*record));
    const auto why = why_not_used(*record, result.target);
    const auto* const seed = measure::find_text(record->settings, "seed");
    if (!why.empty()) {
      result.not_used.push_back(fmt::format("{} is not used: {}", record->id, why));
      continue;
    }
    auto& runs = batches[record->global_batch];
    if (runs.record == nullptr)
      runs = {.batch = record->global_batch, .record = record, .epochs = {}, .unreached = {}};
    require_same_rule(*runs.record, *record);
    if (seed != nullptr && !seeds.emplace(record->global_batch, *seed).second)
      result.not_used.push_back(
          fmt::format("{} is not used: seed {} at batch {} counts once", record->id, *seed, runs.batch));
    else
      add_run(runs, *record, result.target);
  }
  for (auto& [batch, runs] : batches) result.batches.push_back(std::move(runs));
  return result;
}

ReferenceCurve reference_curve(const RunsToAccuracy& runs, const std::string& creator) {
  ReferenceCurve curve{.target = runs.target, .points = {}};
  for (const BatchRuns& one : runs.batches) {
    if (!one.unreached.empty())
      base::fail(
          base::ErrorKind::data,
          "{} of {} runs at batch {} did not reach the accuracy {:g}, and a reference of the others would be "
          "too fast: {}; train longer, or lower --accuracy",
          one.unreached.size(), one.runs(), one.batch, runs.target.accuracy, end_of(one.unreached.front()));
    if (one.runs() < 2 * kFewestRuns)
      base::fail(
          base::ErrorKind::data,
          "batch {} has {}, and a reference needs at least {}: twice as many as the runs that are checked against "
          "it, with a seed each",
          one.batch, base::counted(one.runs(), "run"), 2 * kFewestRuns);
    const Record& record = *one.record;
    curve.points.push_back({.benchmark = mlperf_benchmark(record),
                            .creator = creator,
                            .when = record.created.substr(0, record.created.find('T')),
                            .platform = mlperf_platform(record),
                            .batch = one.batch,
                            .hyperparameters = mlperf_hyperparameters(record),
                            .epochs = one.epochs,
                            .evaluated_every = one.evaluated_every,
                            .train_samples = record.data.train_samples,
                            .test_samples = record.data.test_samples,
                            .settings = settings_of_rule(record)});
  }
  if (curve.points.empty())
    base::fail(base::ErrorKind::data, "no training can be used: {}", fmt::join(runs.not_used, "; "));
  return curve;
}

std::vector<ReferenceCheck> check_against(const ReferenceCurve& curve, const RunsToAccuracy& runs) {
  base::expects(!curve.points.empty() && runs.target.of_validation, "a reference, and runs to its target");
  std::vector<ReferenceCheck> checks;
  const auto& reference = curve.points.front();
  for (const BatchRuns& one : runs.batches) {
    if (curve.target && mlperf_benchmark(*one.record) != reference.benchmark)
      base::fail(base::ErrorKind::data, "the reference is of {}, but {} trains {}", reference.benchmark,
                 one.record->id, mlperf_benchmark(*one.record));
    auto& check = checks.emplace_back();
    check.batch = one.batch;
    check.runs = one.runs();
    const auto points = points_around(curve, one.batch);
    if (!points) {
      check.not_decided =
          fmt::format("the reference has batches from {} to {}, and nothing is guessed beyond them",
                      reference.batch, curve.points.back().batch);
      continue;
    }
    check.below = points->below->batch;
    check.above = points->above->batch;
    check.reference_runs =
        static_cast<int>(std::min(points->below->epochs.size(), points->above->epochs.size()));
    check.remarks = remarks_on(*points, one, runs.target);
    check.not_decided = why_not_judged(*points, one);
    if (check.not_decided.empty())
      judge(check, *points, one, kFalseAlarms / static_cast<double>(runs.batches.size()));
  }
  return checks;
}

}  // namespace paceline::analysis

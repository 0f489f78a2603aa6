#include "analysis/target/steps_to_target.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "analysis/compare/consistency.h"
#include "base/error.h"
#include "base/text.h"
#include "measure/setting.h"
#include "measure/statistics.h"

namespace paceline::analysis {
namespace {

using measure::Record;
using measure::SettingRole;

constexpr double kProbability = 0.975;  ///< of Student's quantile, for a 95 % interval
constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// B_c is looked for up to so many times beyond the batches on either side. Farther away the curve is a
/// constant, or falls as 1 / B, and no batch says where it bends.
constexpr double kFar = 1000;

/// The runs of one batch, in logarithms.
struct OneBatch {
  double batch = 0;
  double mean = 0;
  double squares = 0;  ///< of the runs' distances from the mean
  std::size_t runs = 0;
};

std::vector<OneBatch> batches_of(std::span<const StepsPoint> points) {
  std::map<std::int64_t, std::vector<double>> logs;
  for (const StepsPoint& point : points) {
    base::expects(point.batch > 0 && point.steps > 0, "batches and steps are above 0");
    logs[point.batch].push_back(std::log(point.steps));
  }
  std::vector<OneBatch> batches;
  for (const auto& [batch, runs] : logs) {
    OneBatch one{.batch = static_cast<double>(batch), .mean = measure::mean(runs), .runs = runs.size()};
    for (const double run : runs) one.squares += (run - one.mean) * (run - one.mean);
    batches.push_back(one);
  }
  return batches;
}

/// log S(B) - log S_min.
double bend(double log_critical, double batch) { return std::log1p(std::exp(log_critical) / batch); }

/// The best S_min for a B_c, and what it leaves.
struct Profile {
  double log_s_min = 0, squares = 0;
};
Profile profile(const std::vector<OneBatch>& batches, double log_critical) {
  Profile result;
  const auto count = static_cast<double>(batches.size());
  for (const auto& one : batches) result.log_s_min += (one.mean - bend(log_critical, one.batch)) / count;
  for (const auto& one : batches) {
    const double rest = one.mean - bend(log_critical, one.batch) - result.log_s_min;
    result.squares += rest * rest;
  }
  return result;
}

/// The place of the least sum of squares in [low, high]: the best of a grid, then golden sections beside it.
double best_log_critical(const std::vector<OneBatch>& batches, double low, double high) {
  constexpr int kGrid = 400, kSections = 80;
  const double width = (high - low) / kGrid;
  double best = low;
  for (int i = 1; i <= kGrid; ++i)
    if (const double at = low + i * width; profile(batches, at).squares < profile(batches, best).squares)
      best = at;
  const double golden = (std::sqrt(5.0) - 1) / 2;
  double a = std::max(low, best - width), b = std::min(high, best + width);
  for (int i = 0; i < kSections; ++i) {
    const double left = b - golden * (b - a), right = a + golden * (b - a);
    if (profile(batches, left).squares < profile(batches, right).squares)
      b = right;
    else
      a = left;
  }
  return (a + b) / 2;
}

/// From `inside`, whose squares are at most `limit`, towards `end`: the last place where they are.
double end_of_interval(const std::vector<OneBatch>& batches, double inside, double end, double limit) {
  constexpr int kHalvings = 60;
  if (profile(batches, end).squares <= limit) return end;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (inside + end) / 2;
    (profile(batches, middle).squares <= limit ? inside : end) = middle;
  }
  return inside;
}

/// t^2 s^2: by how much the squares of a curve may exceed those of the best one, which are `least`.
double allowance(const std::vector<OneBatch>& batches, double least) {
  const auto count = static_cast<double>(batches.size());
  const double scatter_degrees = count - 2;
  double t = measure::student_quantile(kProbability, scatter_degrees);
  const double by_scatter = t * t * least / scatter_degrees;
  double squares = 0, degrees = 0, per_run = 0;
  for (const auto& one : batches) {
    squares += one.squares;
    degrees += static_cast<double>(one.runs) - 1;
    per_run += 1 / static_cast<double>(one.runs) / count;
  }
  if (degrees < 1) return by_scatter;
  t = measure::student_quantile(kProbability, degrees);
  return std::max(by_scatter, t * t * squares / degrees * per_run);
}

/// The extremes over the curves of S_min times (1 + B_c / batch).
Estimate extremes(const std::vector<StepsFit::Curve>& curves, double median, double batch, int n) {
  Estimate result{.median = median, .low = median, .high = median, .n = n};
  for (const auto& curve : curves) {
    const double middle = curve.log_s_min + bend(curve.log_critical, batch);
    result.low = std::min(result.low, std::exp(middle - curve.slack));
    result.high = std::max(result.high, std::exp(middle + curve.slack));
  }
  return result;
}

enum class Shape : std::uint8_t { fits, too_few, is_flat, is_inverse };

struct Fitted {
  Shape shape = Shape::too_few;
  std::optional<StepsFit> fit;
};

Fitted fitted(std::span<const StepsPoint> points) {
  constexpr int kCurves = 256;
  const auto batches = batches_of(points);
  if (std::ssize(batches) < kFewestBatches) return {};
  const double low = std::log(batches.front().batch / kFar), high = std::log(batches.back().batch * kFar);
  const double at = best_log_critical(batches, low, high);
  const double edge = (high - low) / 100;
  if (at < low + edge) return {.shape = Shape::is_flat, .fit = {}};
  if (at > high - edge) return {.shape = Shape::is_inverse, .fit = {}};
  const Profile best = profile(batches, at);
  const double allowed = allowance(batches, best.squares);
  const double from = end_of_interval(batches, at, low, best.squares + allowed);
  const double to = end_of_interval(batches, at, high, best.squares + allowed);
  const auto count = static_cast<double>(batches.size());
  StepsFit fit{.rms = std::sqrt(best.squares / count),
               .from_batch = std::llround(batches.front().batch),
               .to_batch = std::llround(batches.back().batch)};
  const auto add = [&](double log_critical) {
    const Profile one = profile(batches, log_critical);
    const double left = std::max(0.0, best.squares + allowed - one.squares);
    fit.curves.push_back(
        {.log_critical = log_critical, .log_s_min = one.log_s_min, .slack = std::sqrt(left / count)});
  };
  for (int i = 0; i <= kCurves; ++i) add(from + (to - from) * i / kCurves);
  add(at);
  const int n = static_cast<int>(batches.size());
  fit.critical_batch = {.median = std::exp(at),
                        .low = from > low ? std::exp(from) : 0,
                        .high = to < high ? std::exp(to) : kInfinity,
                        .n = n};
  fit.s_min = extremes(fit.curves, std::exp(best.log_s_min), kInfinity, n);
  if (fit.critical_batch.high == kInfinity) fit.s_min.low = 0;
  return {.shape = Shape::fits, .fit = std::move(fit)};
}

/// A study's record of a training that failed knows the rate only as it was asked for.
double rate_of(const Record& record) {
  if (record.learning_rate.peak > 0) return record.learning_rate.peak;
  const std::string text = setting_text(record, "lr");
  return text.empty() ? 0 : std::strtod(text.c_str(), nullptr);
}

/// Whether trainings that differ in it are still of one curve: it is the batch, the rate, the seed, or how
/// the work is done.
bool is_free_on_a_curve(std::string_view key) {
  const auto role = measure::role_of(key);
  return role == SettingRole::size || role == SettingRole::window || role == SettingRole::lr_scaling ||
         measure::is_of_execution(key) || key == measure::Setting("lr").key();
}

measure::SettingTexts rule_of_curve(const Record& record) {
  measure::SettingTexts rule;
  for (const auto& [key, text] : record.settings)
    if (!is_free_on_a_curve(key)) rule.emplace(key, text);
  return rule;
}

enum class Outcome : std::uint8_t { reached, not_reached, unknown };

Outcome outcome_of(const Record& record) {
  if (record.status == "failed" && !record.loss) return Outcome::not_reached;  // it diverged
  if (record.status != "complete" || contradiction(record)) return Outcome::unknown;
  const auto reached = record.target ? record.target->update : std::nullopt;
  if (reached && *reached < 1) return Outcome::unknown;  // no step was made: the weights came trained
  return reached ? Outcome::reached : Outcome::not_reached;
}

/// The runs of one batch at one rate. A seed counts once, and as reached if it was trained again after it
/// failed.
struct AtRate {
  std::map<std::string, const Record*> by_seed;
  std::vector<const Record*> without_seed;

  [[nodiscard]] std::vector<double> log_steps() const {
    std::vector<double> logs;
    for (const Record* record : all())
      if (outcome_of(*record) == Outcome::reached)
        logs.push_back(std::log(static_cast<double>(*record->target->update)));
    return logs;
  }
  [[nodiscard]] std::vector<const Record*> all() const {
    auto records = without_seed;
    for (const auto& [seed, record] : by_seed) records.push_back(record);
    return records;
  }
};

BatchSteps row_of(std::int64_t batch, const std::map<double, AtRate>& rates) {
  BatchSteps best{.batch = batch};
  bool is_first = true;
  for (const auto& [rate, runs] : rates) {
    const auto logs = runs.log_steps();
    BatchSteps row{.batch = batch, .rate = rate};
    row.seeds = static_cast<int>(logs.size());
    row.failed = static_cast<int>(runs.all().size()) - row.seeds;
    row.rate_at_end = rate == rates.begin()->first || rate == rates.rbegin()->first;
    if (row.seeds > 0) {
      const double mean = measure::mean(logs);
      const double half = row.seeds < 2 ? 0
                                        : measure::student_quantile(kProbability, row.seeds - 1) *
                                              measure::standard_deviation(logs) / std::sqrt(row.seeds);
      row.steps = std::exp(mean);
      row.low = std::exp(mean - half);
      row.high = std::exp(mean + half);
    }
    row.is_in_fit = row.seeds > 0 && row.failed == 0 && !row.rate_at_end;
    // A mean over the seeds that reached it flatters a rate at which others did not. Of a study that was
    // stopped some rates have more seeds than others.
    const auto rank = [](const BatchSteps& one) {
      return std::tuple(one.seeds == 0, one.failed, -one.seeds, one.steps);
    };
    if (is_first || rank(row) < rank(best)) best = row;
    is_first = false;
  }
  return best;
}

std::string why_not(Shape shape, const std::vector<BatchSteps>& rows) {
  if (shape == Shape::is_flat)
    return "a larger batch does not need fewer steps here, so that no B_c can be told";
  if (shape == Shape::is_inverse)
    return "the steps fall as 1 / B over all of these batches, so that B_c lies far beyond them: add larger ones";
  const auto tuned = std::ranges::count_if(rows, &BatchSteps::is_in_fit);
  const auto ends = std::ranges::count_if(rows, &BatchSteps::rate_at_end);
  return fmt::format(
      "a fit needs {} batches with a tuned rate (one inside the rates that were tried) at which every seed "
      "reached the target; {} of {} have one{}",
      kFewestBatches, tuned, rows.size(),
      ends > 0
          ? fmt::format(
                ", and at {} the best rate is the lowest or the highest: begin at another --lr, or try more "
                "--rates",
                base::counted(ends, "batch", "batches"))
          : "");
}

/// Trainings of one curve.
struct TrainedCurve {
  const Record* first = nullptr;
  measure::SettingTexts rule;
  std::map<std::int64_t, std::map<double, AtRate>> batches;
};

StepsToTarget subject_of_curve(const TrainedCurve& curve) {
  StepsToTarget result{.model = curve.first->model.name,
                       .data = measure::name_of_data(*curve.first),
                       .quantity = curve.first->target->quantity,
                       .value = curve.first->target->value};
  std::vector<StepsPoint> points;
  for (const auto& [batch, rates] : curve.batches) {
    result.rows.push_back(row_of(batch, rates));
    const BatchSteps& row = result.rows.back();
    for (const auto& [rate, runs] : rates) {
      for (const Record* record : runs.all()) {
        result.records.push_back(record);
        const auto every = setting_text(*record, "evaluate-steps");
        if (!every.empty())
          result.evaluated_every =
              std::max<std::int64_t>(result.evaluated_every, std::strtoll(every.c_str(), nullptr, 10));
      }
      if (rate == row.rate && row.is_in_fit)
        for (const double log : runs.log_steps()) points.push_back({.batch = batch, .steps = std::exp(log)});
    }
  }
  auto [shape, fit] = fitted(points);
  result.fit = std::move(fit);
  if (!result.fit) result.no_fit = why_not(shape, result.rows);
  return result;
}

bool are_of_one_subject(const Record& a, const Record& b) {
  return a.model.name == b.model.name && a.data.spec == b.data.spec;
}

/// The settings in which a curve differs from the others of its model and data.
std::string difference_of(const TrainedCurve& curve, const std::vector<TrainedCurve>& all) {
  measure::SettingTexts own;
  for (const TrainedCurve& other : all) {
    if (!are_of_one_subject(*other.first, *curve.first)) continue;
    for (const auto& [key, text, there] : different_settings(curve.rule, other.rule))
      own.emplace(key, text_or(text, ""));
  }
  own.erase("target");  // the quantity and the value say it
  std::vector<std::string> texts;
  for (const auto& [key, text] : own)
    texts.push_back(text.empty() ? "no " + key : fmt::format("{} {}", key, text));
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

Estimate StepsFit::steps_at(double batch) const {
  base::expects(batch > 0, "a batch is above 0");
  return extremes(curves, s_min.median * (1 + critical_batch.median / batch), batch, s_min.n);
}

bool StepsFit::is_within(double batch) const {
  return batch >= static_cast<double>(from_batch) && batch <= static_cast<double>(to_batch);
}

std::optional<StepsFit> fit_steps(std::span<const StepsPoint> points) { return fitted(points).fit; }

std::vector<StepsToTarget> steps_to_target(std::span<const Cell> cells) {
  std::vector<TrainedCurve> curves;
  const auto add = [&](const Record& record) {
    const std::string target = setting_text(record, "target");
    if (target.empty() || outcome_of(record) == Outcome::unknown) return;
    const auto rule = rule_of_curve(record);
    auto curve = std::ranges::find_if(curves, [&](const TrainedCurve& one) {
      return are_of_one_subject(*one.first, record) && one.rule == rule;
    });
    if (curve == curves.end()) {
      curves.push_back({.first = nullptr, .rule = rule, .batches = {}});
      curve = std::prev(curves.end());
      curve->first = &record;
    }
    if (curve->first->target == std::nullopt && record.target) curve->first = &record;
    AtRate& runs = curve->batches[record.global_batch][rate_of(record)];
    const auto seed = setting_text(record, "seed");
    if (seed.empty()) return runs.without_seed.push_back(&record);
    const Record*& own = runs.by_seed[seed];
    if (own == nullptr || outcome_of(*own) != Outcome::reached) own = &record;
  };
  for (const Cell& cell : cells)
    for (const auto* records : {&cell.records, &cell.lost})
      for (const Record* record : *records) add(*record);
  std::erase_if(curves, [](const TrainedCurve& curve) { return !curve.first->target; });
  std::vector<StepsToTarget> subjects;
  for (const TrainedCurve& curve : curves) {
    subjects.push_back(subject_of_curve(curve));
    subjects.back().differs = difference_of(curve, curves);
  }
  return subjects;
}

}  // namespace paceline::analysis

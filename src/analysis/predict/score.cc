#include "analysis/predict/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/compare/setup.h"
#include "analysis/steps/waterfall.h"
#include "base/error.h"
#include "base/sha256.h"
#include "base/text.h"

namespace paceline::analysis {
namespace {

using measure::Record;

/// Settings in which a measured run may differ from a predicted one: sizes are what is predicted.
bool may_differ(std::string_view key) {
  const auto setting = measure::Setting::find(key);
  return setting && setting->on_time() != measure::Effect::refuse;
}

/// Why a record does not answer a prediction about `subject`; "" if it does.
std::string why_not_of(const Subject& subject, const Record& record) {
  const Subject measured = subject_of(record);
  const auto differ = [](std::string_view what, const std::string& then, const std::string& now) {
    return fmt::format("the prediction is of {} {}, this of {}", what, then, now);
  };
  if (measured.model != subject.model) return differ("the model", subject.model, measured.model);
  if (subject.parameters > 0 && measured.parameters != subject.parameters)
    return fmt::format("the prediction is of {} parameters, this of {}", subject.parameters,
                       measured.parameters);
  if (!subject.data.empty() && measured.data != subject.data)
    return differ("the data", subject.data, measured.data);
  if (!subject.precision.empty() && measured.precision != subject.precision)
    return differ("the precision", subject.precision, measured.precision);
  if (subject.settings.empty()) return "";
  for (const auto& [key, then, now] : different_settings(subject.settings, measured.settings))
    if (!may_differ(key))
      return fmt::format("--{} was {} in the prediction's records and is {} here", key,
                         text_or(then, "not set"), text_or(now, "not set"));
  return "";
}

ScoreKind kind_of(const Subject& subject, const Record& record) {
  const auto measured = subject_of(record);
  if (!measured.emulated_compute.empty()) return ScoreKind::ghosts;
  return measured.cpu == subject.cpu && measured.host == subject.host ? ScoreKind::this_host
                                                                      : ScoreKind::another_host;
}

/// Of the middle repeat, as predictions are. The median step where a record has no ranks.
double measured_step_s(const Cell& cell) {
  const bool has_lines = std::ranges::any_of(
      cell.records, [](const Record* record) { return !record->ranks.empty() && record->window.steps > 0; });
  return has_lines ? SampledCell(cell).middle().total() : cell.step_s.median;
}

/// Why the cell does not answer the prediction, whose `point` it would answer; "" if it does.
std::string why_not_scored(const Prediction& prediction, const Cell& cell, const PredictedPoint* point) {
  const auto& record = cell.record();
  const auto is_input = [&](const Record* one) {
    return std::ranges::find(prediction.inputs, sha256_of_record(*one), &PredictionInput::sha256) !=
           prediction.inputs.end();
  };
  if (std::ranges::any_of(cell.records, is_input)) return "the prediction was made from it";
  if (auto why = why_not_of(prediction.subject, record); !why.empty()) return why;
  const auto kind = kind_of(prediction.subject, record);
  if (cell.oversubscribed && kind != ScoreKind::ghosts) return fmt::format("it had {}", cell.shares());
  const auto& device = prediction.subject.device;
  if (const auto here = subject_of(record).device;
      prediction.is_as_measured && !device.empty() && here != device)
    return fmt::format("the prediction is of {}, this of {}", device, here);
  if (!prediction.is_as_measured && kind == ScoreKind::this_host && nodes(record) == 1)
    return "the prediction is of another cluster, or of what would be changed, and this is of the machine that it began from";
  if (point == nullptr)
    return fmt::format("nothing was predicted for {} with a local batch of {:g}",
                       base::counted(cell.workers, "worker"), cell.batch_per_worker());
  return point->is_bound ? "its prediction is only a bound, since the network was not known" : "";
}

}  // namespace

Rivals rivals(std::span<const TimedStep> measured, std::span<const std::int64_t> workers, Mode mode) {
  base::expects(!measured.empty(), "something was measured");
  const auto &first = measured.front(), &last = measured.back();
  const auto share = [&](double n) { return mode == Mode::weak ? 1 : first.workers / n; };
  const double overhead = last.seconds - share(last.workers) * first.seconds;
  // N / throughput - 1 = a (n - 1) + b n (n - 1) with n = N / N0; both sums of squares are of these two
  // terms.
  double xx = 0, xy = 0, yy = 0, xr = 0, yr = 0;
  std::size_t beyond_first = 0;
  for (const auto& one : measured) {
    const double n = one.workers / first.workers;
    if (n <= 1) continue;
    ++beyond_first;
    const double x = n - 1, y = n * (n - 1);
    const double rest = one.seconds / (share(one.workers) * first.seconds) - 1;
    xx += x * x;
    xy += x * y;
    yy += y * y;
    xr += x * rest;
    yr += y * rest;
  }
  double a = xx > 0 ? std::max(0.0, xr / xx) : 0, b = 0;
  const double determinant = xx * yy - xy * xy;
  if (beyond_first > 1 && determinant > 0) {
    const double both_a = (xr * yy - yr * xy) / determinant, both_b = (xx * yr - xy * xr) / determinant;
    if (both_b > 0 && both_a >= 0) {
      a = both_a;
      b = both_b;
    } else if (both_b > 0) {
      a = 0;
      b = std::max(0.0, yr / yy);
    }
  }
  Rivals result;
  for (const auto number : workers) {
    const auto count = static_cast<double>(number);
    const double n = count / first.workers, ideal = share(count) * first.seconds;
    result.constant_overhead.push_back(n > 1 ? ideal + overhead : first.seconds);
    result.scalability_law.push_back(ideal * (1 + a * (n - 1) + b * n * (n - 1)));
  }
  return result;
}

std::string_view name(ScoreKind kind) {
  constexpr std::string_view kNames[]{"ghosts", "this host", "another host"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string sha256_of_record(const Record& record) { return base::sha256_of_text(measure::to_json(record)); }

Scores score(const Prediction& prediction, std::span<const Cell> cells) {
  Scores scores;
  for (const Cell& cell : cells) {
    if (!cell.is_measured()) continue;
    const auto point = std::ranges::find_if(prediction.points, [&](const PredictedPoint& one) {
      return one.workers == cell.workers && one.local_batch == cell.batch_per_worker();
    });
    const bool is_predicted = point != prediction.points.end();
    if (const auto why = why_not_scored(prediction, cell, is_predicted ? &*point : nullptr); !why.empty()) {
      scores.not_scored.push_back(fmt::format("{} is not scored: {}", cell.name(), why));
      continue;
    }
    scores.steps.push_back({.workers = cell.workers,
                            .local_batch = point->local_batch,
                            .predicted = point->step_s,
                            .measured = measured_step_s(cell),
                            .cell = cell.name(),
                            .kind = kind_of(prediction.subject, cell.record()),
                            .constant_overhead = point->constant_overhead,
                            .scalability_law = point->scalability_law});
  }
  return scores;
}

std::optional<Calibration> calibration(std::span<const Prediction> predictions, ScoreKind kind) {
  constexpr std::size_t kFewest = 20;
  constexpr double kCovered = 0.9;
  constexpr double kLeastHalf = 1e-3;  // an interval can end at its value
  std::vector<double> distances;
  for (const auto& prediction : predictions)
    for (const auto& one : prediction.scores) {
      if (one.kind != kind) continue;
      const auto& [value, low, high] = one.predicted;
      const double half = one.measured < value ? std::log(value / low) : std::log(high / value);
      distances.push_back(prediction.widening * std::abs(std::log(one.ratio())) / std::max(half, kLeastHalf));
    }
  if (distances.size() < kFewest) return std::nullopt;
  std::ranges::sort(distances);
  const auto n = static_cast<double>(distances.size());
  const auto rank = static_cast<std::size_t>(std::ceil((n + 1) * kCovered));
  return Calibration{.widening = distances[std::min(rank, distances.size()) - 1], .scores = distances.size()};
}

}  // namespace paceline::analysis

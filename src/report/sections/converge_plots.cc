#include "report/sections/converge_plots.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "analysis/record_times.h"
#include "measure/statistics.h"
#include "report/sections/parts.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using analysis::Convergence;
using analysis::Variant;
using measure::Record;

/// Mean over a variant's seeds at one place of an axis. The interval is the table's, one standard error to
/// either side; of one seed there is none, since what the test set alone says would be taken for a spread.
Point mean_point(const Variant& variant, double x, const std::vector<double>& accuracies) {
  const double mean = measure::mean(accuracies);
  Point point{.x = x, .y = 100 * mean};
  if (accuracies.size() < 2) return point;
  const double error =
      measure::accuracy_standard_error(accuracies, static_cast<long>(variant.record->data.test_samples));
  point.low = 100 * (mean - error);
  point.high = 100 * (mean + error);
  return point;
}

Series curve(const Variant& variant, bool over_updates) {
  std::map<double, std::vector<double>> by_x;
  for (const Record* record : variant.records)
    for (const auto& epoch : record->epochs)
      if (epoch.test_accuracy)
        by_x[over_updates ? static_cast<double>(epoch.updates) : analysis::epochs_done(*record, epoch)]
            .push_back(*epoch.test_accuracy);
  Series series{.name = variant.name};
  for (const auto& [x, accuracies] : by_x) series.points.push_back(mean_point(variant, x, accuracies));
  return series;
}

/// Seconds differ from seed to seed: a point stands at the mean of those that its epoch took.
Series curve_over_seconds(const Variant& variant) {
  struct At {
    std::vector<double> seconds, accuracies;
  };
  std::map<std::int64_t, At> by_updates;
  for (const Record* record : variant.records) {
    const auto ends = analysis::seconds_to_epochs(*record);
    if (ends.empty()) return {};
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const auto& epoch = record->epochs[i];
      if (!epoch.test_accuracy) continue;
      by_updates[epoch.updates].seconds.push_back(ends[i]);
      by_updates[epoch.updates].accuracies.push_back(*epoch.test_accuracy);
    }
  }
  Series series{.name = variant.name};
  for (const auto& [updates, at] : by_updates) {
    series.points.push_back(mean_point(variant, measure::mean(at.seconds), at.accuracies));
    series.points.back().mark = point_mark(*variant.cell);
  }
  return series;
}

/// What the points are of: "Means over 3 seeds, with one standard error to either side."
std::string said_of_seeds(const std::vector<Variant>& variants) {
  const auto [fewest, most] = std::minmax_element(
      variants.begin(), variants.end(), [](const Variant& a, const Variant& b) { return a.seeds < b.seeds; });
  if (most->seeds == 1) return "One seed: no interval, another seed may lie elsewhere.";
  if (fewest->seeds == most->seeds)
    return fmt::format("Means over {} seeds, with one standard error to either side.", most->seeds);
  std::vector<std::string> each;
  for (const Variant& variant : variants)
    each.push_back(fmt::format("{}: {}", variant.name, count(variant.seeds, "seed")));
  return fmt::format("Means over seeds, with one standard error to either side; one seed has none ({}).",
                     fmt::join(each, "; "));
}

Plot plot(const Convergence& result, bool over_updates) {
  Plot plot{
      .id = over_updates ? "converge-updates" : "converge-epochs",
      .title = over_updates ? "Test accuracy over updates" : "Test accuracy over epochs",
      .caption = fmt::format("{} {}",
                             over_updates ? "Against updates: how much of the loss is only fewer updates."
                                          : "Against epochs: the same images seen.",
                             said_of_seeds(result.variants)),
      .x = {.label = over_updates ? "updates" : "epoch", .log = over_updates},
      .y = {.label = "test accuracy", .unit = "%"}};
  for (const Variant& variant : result.variants) plot.series.push_back(curve(variant, over_updates));
  return plot;
}

/// Which of two is ahead may change from one axis to another: a larger batch that loses at equal epochs may
/// win at equal seconds.
Plot plot_over_seconds(const Convergence& result) {
  Plot plot{.id = "converge-seconds",
            .title = "Test accuracy over training time",
            .x = {.label = "training time", .unit = "s"},
            .y = {.label = "test accuracy", .unit = "%"}};
  const auto& first = result.variants[result.baseline.value_or(0)];
  std::vector<Variant> drawn;
  std::vector<std::string> left_out;
  for (const Variant& variant : result.variants) {
    auto series = curve_over_seconds(variant);
    const auto verdict = analysis::compare(*first.record, *variant.record, analysis::Topic::time_to_accuracy);
    if (!series.points.empty() && verdict.comparable()) {
      plot.series.push_back(std::move(series));
      drawn.push_back(variant);
      continue;
    }
    left_out.push_back(fmt::format(
        "{}: {}", variant.name,
        verdict.comparable() ? "the seconds of a part of it are not known" : verdict.refusals.front()));
  }
  if (drawn.empty()) return plot;
  plot.caption = fmt::format(
      "Against seconds of training, without evaluation and checkpoints: what is reached first on these "
      "processors. {}",
      said_of_seeds(drawn));
  if (!left_out.empty()) plot.caption += fmt::format(" Left out: {}.", fmt::join(left_out, "; "));
  return plot;
}

}  // namespace

std::vector<Plot> converge_plots(const Convergence& result) {
  if (result.variants.empty()) return {};
  std::vector<Plot> plots{plot(result, false), plot(result, true)};
  if (auto over_seconds = plot_over_seconds(result); !over_seconds.series.empty())
    plots.push_back(std::move(over_seconds));
  return plots;
}

}  // namespace paceline::report

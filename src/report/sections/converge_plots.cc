#include "report/sections/converge_plots.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "report/sections/curves.h"
#include "report/sections/parts.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using analysis::Convergence;
using analysis::Variant;

/// What the points show: "Means over 3 seeds, with one standard error to either side."
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

Plot convergence_plot(const Convergence& result, bool over_updates) {
  Plot plot{
      .id = over_updates ? "converge-updates" : "converge-epochs",
      .title = over_updates ? "Test accuracy over updates" : "Test accuracy over epochs",
      .caption = fmt::format("{} {}",
                             over_updates ? "Against updates: how much of the loss is only fewer updates."
                                          : "Against epochs: the same images seen.",
                             said_of_seeds(result.variants)),
      .x = {.label = over_updates ? "updates" : "epoch", .log = over_updates},
      .y = {.label = "test accuracy", .unit = "%"}};
  for (const Variant& variant : result.variants)
    plot.series.push_back(
        curve(variant, over_updates ? Over::updates : Over::epochs, Quantity::test_accuracy));
  return plot;
}

/// The order of two variants may depend on the axis: a larger batch that is worse at equal epochs may be
/// better at equal seconds.
Plot plot_over_seconds(const Convergence& result) {
  Plot plot{.id = "converge-seconds",
            .title = "Test accuracy over training time",
            .x = {.label = "training time", .unit = "s"},
            .y = {.label = "test accuracy", .unit = "%"}};
  const auto& first = result.variants[result.baseline.value_or(0)];
  std::vector<Variant> drawn;
  std::vector<std::string> left_out;
  for (const Variant& variant : result.variants) {
    auto series = curve(variant, Over::seconds, Quantity::test_accuracy);
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
  std::vector<Plot> plots{convergence_plot(result, false), convergence_plot(result, true)};
  if (auto over_seconds = plot_over_seconds(result); !over_seconds.series.empty())
    plots.push_back(std::move(over_seconds));
  return plots;
}

}  // namespace paceline::report

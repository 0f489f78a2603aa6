#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/trainings/noise.h"
#include "measure/statistics.h"
#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

// How many steps each batch needs to a target, and the curve S(B) = S_min (1 + B_c / B) through them.

namespace paceline::report {
namespace {

using analysis::BatchSteps;
using analysis::Estimate;
using analysis::StepsFit;
using analysis::StepsToTarget;

constexpr const char* kEndOfGrid = "end";

constexpr const char* kTargetDefinition =
    "Steps: updates until an evaluation first reached the target, the geometric mean over seeds at the learning rate "
    "that needs fewest, with a 95 % interval by Student's t over the seeds. Samples: steps x batch. Fitted: S(B) = "
    "S_min (1 + B_c / B), fitted to the logarithms of the steps; intervals hold every curve that the seeds, and the "
    "scatter of the batches around the curve, do not exclude at 95 %. B_c: the batch that needs twice S_min steps, and "
    "twice the fewest samples. docs/measuring.md.";

/// How far beyond its reach the curve is drawn, times the largest batch of the fit.
constexpr double kDrawnBeyond = 4;

std::string text_of_target(const StepsToTarget& one) {
  return one.quantity == "accuracy" ? fmt::format("accuracy {}", percent(one.value))
                                    : fmt::format("{} {:g}", one.quantity, one.value);
}

/// "accuracy 97.0 %", of several subjects "accuracy 97.0 % (mnist-cnn on mnist, optimizer lars)".
std::string title_of(const StepsToTarget& one, bool is_only) {
  const auto target = text_of_target(one);
  if (is_only) return target;
  return fmt::format("{} ({} on {}{})", target, one.model, one.data, behind(one.differs));
}

/// "310 [250, 390]"; an end that nothing bounds is said in words.
std::string bounded_text(const Estimate& figure) {
  const auto middle = number(figure.median);
  if (std::isinf(figure.high))
    return figure.low > 0
               ? fmt::format("{} (above {}; nothing bounds it from above)", middle, number(figure.low))
               : fmt::format("{} (nothing bounds it)", middle);
  return fmt::format("{} [{}, {}]", middle, number(figure.low), number(figure.high));
}

TableCell steps_cell(double steps, double low, double high, double factor) {
  TableCell cell = value(steps * factor);
  if (low < high) {
    cell.low = low * factor;
    cell.high = high * factor;
  }
  return cell;
}

std::vector<TableCell> row_of_batch(const BatchSteps& row, const std::optional<StepsFit>& fit) {
  const auto batch = static_cast<double>(row.batch);
  std::vector<TableCell> cells{value(batch), words(fmt::format("{:g}", row.rate))};
  if (row.rate_at_end) cells.back() = with_mark(cells.back(), kEndOfGrid);
  if (row.steps > 0) {
    cells.push_back(steps_cell(row.steps, row.low, row.high, 1));
    cells.push_back(steps_cell(row.steps, row.low, row.high, batch));
  } else {
    cells.insert(cells.end(), 2, missing("no seed reached the target"));
  }
  if (fit) {
    const auto fitted = fit->steps_at(batch);
    cells.push_back(std::isfinite(fitted.high) ? figure(fitted) : value(fitted.median));
    if (!fit->is_within(batch)) cells.back() = with_mark(cells.back(), "beyond");
  } else {
    cells.push_back(missing("there is no fit"));
  }
  cells.push_back(words(row.is_in_fit ? "yes" : "no"));
  cells.push_back(value(row.seeds));
  cells.push_back(value(row.failed));
  return cells;
}

Table target_table(const StepsToTarget& one, bool is_only) {
  Table table{.id = "steps-to-target",
              .title = "Steps and samples to " + title_of(one, is_only),
              .definition = kTargetDefinition,
              .columns = {{.key = "global_batch", .label = "global batch", .format = Format::integer},
                          {.key = "lr", .label = "best lr"},
                          {.key = "steps", .label = "steps", .format = Format::integer},
                          {.key = "samples", .label = "samples", .format = Format::integer},
                          {.key = "fitted", .label = "fitted steps", .format = Format::integer},
                          {.key = "in_fit", .label = "in the fit"},
                          {.key = "seeds", .label = "seeds", .format = Format::integer},
                          {.key = "failed", .label = "seeds that missed it", .format = Format::integer}}};
  Footnotes footnotes;
  for (const BatchSteps& row : one.rows) {
    table.rows.push_back(row_of_batch(row, one.fit));
    if (row.rate_at_end)
      footnotes.add(fmt::format(
          "{}: the best learning rate is the lowest or the highest that was tried (--rates), so that another may need "
          "fewer steps; such a batch is not in the fit.",
          kEndOfGrid));
    if (row.failed > 0)
      footnotes.add(
          "A batch at whose best rate a seed missed the target, or diverged, is not in the fit: the mean is "
          "of the others, and flatters it.");
    if (one.fit && !one.fit->is_within(static_cast<double>(row.batch)))
      footnotes.add("beyond: outside of the batches that the curve was fitted to.");
  }
  if (one.evaluated_every > 0)
    footnotes.add(fmt::format("Evaluated after each {} updates: steps are at most so many too many.",
                              integer(one.evaluated_every)));
  table.footnotes = footnotes.take();
  return table;
}

/// The noise scale of the gradient in these trainings, which guesses B_c before any such fit; empty if none
/// of them measured it.
std::string text_of_noise_scales(const StepsToTarget& one) {
  std::vector<double> scales;
  for (const auto* record : one.records)
    if (const auto noise = analysis::noise_course(*record); noise && noise->whole.batch && noise->whole.high)
      scales.push_back(*noise->whole.batch);
  if (scales.empty()) return "";
  const auto [least, most] = std::ranges::minmax(scales);
  return fmt::format(
      " The noise scale of the gradient in {} of the trainings was {} (median; {} to {}): a guess of B_c "
      "before any curve is fitted.",
      scales.size(), number(measure::quantile(scales, 0.5)), number(least), number(most));
}

/// What the fit says, and how far it reaches.
Paragraph text_about_fit(const StepsToTarget& one, bool is_only) {
  const std::string begin = is_only ? "" : title_of(one, false) + ": ";
  if (!one.fit) return warning(fmt::format("{}No curve is fitted: {}.", begin, one.no_fit));
  const auto& fit = *one.fit;
  return finding(fmt::format(
      "{}{} is the critical batch B_c, and S_min {} steps: fitted to {} with {} rms. It speaks of batches from {} to "
      "{}; beyond them it is a guess (published curves of ResNet-50 that were fitted so far erred by 12 to 18 % at 2.5 "
      "to 5 times their largest batch).{}",
      begin, bounded_text(fit.critical_batch), bounded_text(fit.s_min),
      counted(fit.s_min.n, "batch", "batches"), percent(fit.rms), integer(fit.from_batch),
      integer(fit.to_batch), text_of_noise_scales(one)));
}

/// The curve at batches from `from` to `to`; with `by_batch` its samples.
Series drawn_curve(const StepsFit& fit, std::string name, double from, double to, bool by_batch) {
  constexpr int kPoints = 24;
  Series series{.name = std::move(name)};
  for (int i = 0; i <= kPoints; ++i) {
    const double batch = from * std::pow(to / from, static_cast<double>(i) / kPoints);
    const double factor = by_batch ? batch : 1;
    const auto steps = fit.steps_at(batch);
    Point point{.x = batch, .y = steps.median * factor};
    if (std::isfinite(steps.high)) {
      point.low = steps.low * factor;
      point.high = steps.high * factor;
    }
    series.points.push_back(point);
  }
  return series;
}

Plot target_plot(const StepsToTarget& one, bool is_only, bool by_batch) {
  const char* const what = by_batch ? "samples" : "steps";
  Plot plot{
      .id = fmt::format("{}-to-target", what),
      .title =
          fmt::format("{} to {} against the batch", by_batch ? "Samples" : "Steps", title_of(one, is_only)),
      .caption =
          "Below B_c a larger batch saves steps, above it it only costs samples. Dashed: beyond the batches "
          "of the fit.",
      .x = {.label = "global batch", .log = true},
      .y = {.label = what, .log = true}};
  Series measured{.name = "measured"};
  for (const BatchSteps& row : one.rows) {
    if (row.steps <= 0) continue;
    const auto batch = static_cast<double>(row.batch);
    const double factor = by_batch ? batch : 1;
    Point point{.x = batch, .y = row.steps * factor, .n = row.seeds};
    if (row.low < row.high) {
      point.low = row.low * factor;
      point.high = row.high * factor;
    }
    if (row.rate_at_end) point.mark = "end of its rates";
    measured.points.push_back(std::move(point));
  }
  plot.series.push_back(std::move(measured));
  if (!one.fit) return plot;
  const auto from = static_cast<double>(one.fit->from_batch), to = static_cast<double>(one.fit->to_batch);
  plot.series.push_back(drawn_curve(*one.fit, "fitted", from, to, by_batch));
  plot.series.push_back(drawn_curve(*one.fit, "fitted, beyond its reach", to, kDrawnBeyond * to, by_batch));
  plot.series.back().dashed = true;
  return plot;
}

}  // namespace

std::optional<Section> target_section(const Conclusions& conclusions) {
  // One training, or several at one batch, answer no question about batches.
  std::vector<const StepsToTarget*> subjects;
  for (const auto& one : conclusions.targets)
    if (one.rows.size() > 1) subjects.push_back(&one);
  if (subjects.empty()) return std::nullopt;
  Section section{.id = "target", .title = "How many steps does a batch need?"};
  const bool is_only = subjects.size() == 1;
  for (const auto* one : subjects) {
    section.blocks.emplace_back(text_about_fit(*one, is_only));
    section.blocks.emplace_back(target_table(*one, is_only));
    for (const bool by_batch : {false, true})
      section.blocks.emplace_back(target_plot(*one, is_only, by_batch));
  }
  return section;
}

}  // namespace paceline::report

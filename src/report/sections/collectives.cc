#include <fmt/format.h>

#include <algorithm>

#include "analysis/compare/interval.h"
#include "analysis/steps/collectives.h"
#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

// The results of `paceline comm`: collectives alone, without training.

namespace paceline::report {
namespace {

using measure::Record;

constexpr const char* kNothingMoved = "one rank alone transfers nothing";

std::string form_of_buffers(bool in_place) { return in_place ? "in place" : "out of place"; }

/// "2 ranks in 2 processes, mpi: exchange": names the workers whose collectives these are.
std::string whose(const Record& record) {
  const auto& how = record.communication;
  std::string text = count(record.workers, "rank");
  if (how.processes.value_or(1) > 1) text += fmt::format(" in {} processes", *how.processes);
  return fmt::format("{}, {}: {}", text, how.communicator, how.algorithm);
}

TableCell rate_cell(const std::optional<measure::Estimate>& gb_per_s) {
  return gb_per_s ? figure(*gb_per_s) : missing(kNothingMoved);
}

Table collectives_table(const Record& record, const std::string& id) {
  Table table{
      .id = id,
      .title = fmt::format("Collectives: {}", whose(record)),
      .definition =
          "X: bytes; for an all_gather those of its result, for a reduce_scatter those that it sums. t: "
          "time of the slowest rank, with a barrier before it. algbw = X / t; busbw = algbw x 2(N-1)/N "
          "(all_reduce), (N-1)/N (reduce_scatter, all_gather), 1 (broadcast). Correct: every element on "
          "every rank, in every repetition. GB = 1e9 bytes.",
      .columns = {{.key = "collective", .label = "collective"},
                  {.key = "form", .label = "form"},
                  {.key = "bytes", .label = "X", .unit = "B", .format = Format::integer},
                  {.key = "t", .label = "t", .unit = "s", .format = Format::milliseconds},
                  {.key = "algbw", .label = "algbw", .unit = "GB/s", .format = Format::rate},
                  {.key = "busbw", .label = "busbw", .unit = "GB/s", .format = Format::rate},
                  {.key = "repeats", .label = "repeats", .format = Format::integer},
                  {.key = "correct", .label = "correct"}}};
  for (const auto& one : *record.collectives) {
    const auto figures = analysis::figures(one, record.workers);
    table.rows.push_back({words(one.collective), words(form_of_buffers(one.in_place)),
                          value(static_cast<double>(one.bytes)), figure(figures.seconds),
                          rate_cell(figures.algbw), rate_cell(figures.busbw), value(figures.seconds.n),
                          words(one.correct ? "yes" : "NO")});
    if (record.oversubscribed) mark_row(table.rows.back(), 3, "*");
  }
  if (record.workers < 2)
    table.footnotes.push_back(
        "One rank alone transfers nothing: t is that of the call, and there is no bandwidth.");
  if (record.oversubscribed) table.footnotes.push_back("*: more ranks than cores.");
  return table;
}

std::optional<Table> fits(const Record& record, const std::string& id) {
  if (record.workers < 2 || !record.link_fits || record.link_fits->empty()) return std::nullopt;
  Table table{.id = id,
              .title = "Latency and bandwidth",
              .definition =
                  "t(X) = latency + X / bandwidth, fitted over the sizes for the smallest relative errors. "
                  "Residual: root mean square of (t_model - t) / t.",
              .columns = {{.key = "collective", .label = "collective"},
                          {.key = "form", .label = "form"},
                          {.key = "latency", .label = "latency", .unit = "s", .format = Format::milliseconds},
                          {.key = "bandwidth", .label = "bandwidth", .unit = "GB/s", .format = Format::rate},
                          {.key = "residual", .label = "residual", .format = Format::percent1}}};
  bool all_shown = true;
  for (const auto& fit : *record.link_fits) {
    const bool shown = analysis::shows_bandwidth(fit, record);
    all_shown = all_shown && shown;
    table.rows.push_back({words(fit.collective), words(form_of_buffers(fit.in_place)), value(fit.alpha_s),
                          shown ? value(fit.bytes_per_s / 1e9) : missing("nearly all latency"),
                          value(fit.residual)});
  }
  if (!all_shown)
    table.footnotes.push_back(
        "-: up to the largest X nearly all of t is latency, and the times show no bandwidth; measure larger "
        "--sizes.");
  return table;
}

/// Bus bandwidth over sizes, a line for each collective and form with at least two sizes.
std::optional<Plot> bandwidths(const Record& record, const std::string& id) {
  if (record.workers < 2) return std::nullopt;
  Plot plot{.id = id,
            .title = "Bus bandwidth over sizes",
            .caption = "Small messages pay latency; where a line is level, it is bandwidth.",
            .x = {.label = "size X", .unit = "B", .log = true},
            .y = {.label = "busbw", .unit = "GB/s"}};
  for (const auto& one : *record.collectives) {
    const auto busbw = analysis::figures(one, record.workers).busbw;
    if (!busbw) continue;
    const auto name = fmt::format("{}, {}", one.collective, form_of_buffers(one.in_place));
    auto series = std::find_if(plot.series.begin(), plot.series.end(),
                               [&](const Series& known) { return known.name == name; });
    if (series == plot.series.end()) series = plot.series.insert(series, {.name = name});
    Point point{.x = static_cast<double>(one.bytes), .y = busbw->median};
    if (analysis::has_interval(*busbw)) point.low = busbw->low, point.high = busbw->high;
    if (record.oversubscribed) point.mark = "oversubscribed";
    series->points.push_back(std::move(point));
  }
  std::erase_if(plot.series, [](const Series& series) { return series.points.size() < 2; });
  return plot.series.empty() ? std::nullopt : std::optional<Plot>(std::move(plot));
}

}  // namespace

bool is_of_collectives(const Record& record) { return record.kind == "comm" && record.collectives; }

std::optional<Section> collectives_section(const Conclusions& conclusions) {
  Section section{.id = "collectives", .title = "How fast are the collectives alone?"};
  int number = 0;
  for (const Record& record : conclusions.records) {
    if (!is_of_collectives(record)) continue;
    const std::string suffix = ++number == 1 ? "" : fmt::format("-{}", number);
    if (record.status != "complete")
      section.blocks.push_back(warning(fmt::format("{}: {}.", record.status, record.reason)));
    if (auto plot = bandwidths(record, "collective-bandwidths" + suffix))
      section.blocks.push_back(std::move(*plot));
    section.blocks.push_back(collectives_table(record, "collectives" + suffix));
    if (auto table = fits(record, "collective-fits" + suffix)) section.blocks.push_back(std::move(*table));
  }
  if (number == 0) return std::nullopt;
  return section;
}

Section collectives_circumstances(const Conclusions& conclusions) {
  Section section{.id = "circumstances", .title = "How it was measured"};
  for (const Record& record : conclusions.records)
    for (const auto& note : record.notes) section.blocks.push_back(plain(note + "."));
  return section;
}

}  // namespace paceline::report

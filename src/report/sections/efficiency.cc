#include <fmt/format.h>

#include <algorithm>

#include "analysis/steps/remedies.h"
#include "report/answers/remedy_text.h"
#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

// How efficiency is lost: one row per part, for each number of workers.

namespace paceline::report {
namespace {

using analysis::EfficiencyLoss;
using analysis::LossPart;
using analysis::Mode;

constexpr const char* kEfficiencyDefinition =
    "1 - E = L / t(N) with L = t(N) - t0, by the ledger of the typical worker (the middle one by own work); t0 = t(1) "
    "(weak) or t(1)/N (strong). Each part is a line of N workers less the same line of the baseline (over N, strong), "
    "so they add up. Points: the part over t(N). Below 0: a gain. ~: its interval holds 0. Intervals: 95 % by 1,000 "
    "draws of repeats and of blocks of 5 steps of both cells; below 3 repeats their extremes. Saves: part of the step "
    "that the remedy alone takes away, the measured step replayed; together: its share of what all remedies save. "
    "docs/waterfall.md.";

constexpr double kShown = 0.0005;  ///< of a step: less is 0.0 points

std::string remarks_on(const EfficiencyLoss& loss) {
  std::string text;
  const auto add = [&](bool is_so, const char* sentence) {
    if (is_so) text += (text.empty() ? "" : "; ") + std::string(sentence);
  };
  add(loss.batch_is_in_sharing,
      "no cell with as many workers as the baseline shows what the smaller batch costs; it is counted under "
      "sharing");
  add(loss.jitter_is_in_other, "older records do not separate jitter from other waiting");
  add(loss.latency_is_in_transfer, "buckets of one size do not separate latency from transfer");
  return text;
}

void add_rows(Table& table, Footnotes& footnotes, const LossesOfGroup& losses, const EfficiencyLoss& loss) {
  const auto remedies = analysis::remedies(loss);
  const auto& marks = marks_of(*loss.cell);
  for (std::size_t i = 0; i < analysis::kLossParts; ++i) {
    const auto part = static_cast<LossPart>(i);
    const auto& figure = loss.parts[i];
    if (std::abs(loss.points(part)) < kShown) continue;
    TableCell points = value(loss.points(part));
    points.low = figure.low / loss.step_s;
    points.high = figure.high / loss.step_s;
    if (figure.is_within_noise()) points.mark = "~";
    std::vector<TableCell> row{value(static_cast<double>(losses.group->batch)),
                               with_mark(value(loss.cell->workers), marks),
                               words(name(part)),
                               std::move(points),
                               value(figure.seconds),
                               words(""),
                               words(""),
                               words("")};
    const auto remedy = std::find_if(remedies.list.begin(), remedies.list.end(),
                                     [&](const auto& one) { return one.part == part; });
    if (remedy != remedies.list.end()) {
      row[5] = words(name_of(*remedy, *loss.cell));
      row[6] = value(remedy->alone);
      if (remedy->is_bound) row[6].mark = "at most";
      row[7] = value(remedy->share);
    }
    table.rows.push_back(std::move(row));
  }
  footnotes.explain_marks(*loss.cell);
  if (const auto remarks = remarks_on(loss); !remarks.empty())
    footnotes.add(fmt::format("{}: {}.", loss.cell->label, remarks));
  if (const auto few = fewest_repeats({loss.baseline, loss.cell}); !few.empty())
    footnotes.add(
        fmt::format("{} against its baseline: {}; intervals do not include the differences "
                    "between runs.",
                    loss.cell->label, few));
  for (const auto& remedy : remedies.list)
    footnotes.add(fmt::format("{}, {} ({} alone): {}", loss.cell->label, name_of(remedy, *loss.cell),
                              said_of_gain(remedy), command_of(remedy, loss)));
  if (remedies.list.size() > 1)
    footnotes.add(fmt::format("{}: all {} remedies together save {}, {} than each alone adds up to.",
                              loss.cell->label, remedies.list.size(), percent(remedies.all),
                              fmt::format("{} {}", percent(std::abs(remedies.interaction())),
                                          remedies.interaction() < 0 ? "less" : "more")));
}

std::optional<Table> table_of(const Conclusions& conclusions, Mode mode) {
  Table table{.id = fmt::format("scale-{}-loss", name(mode)),
              .title = fmt::format("The efficiency that is lost, {} scaling", name(mode)),
              .definition = kEfficiencyDefinition,
              .columns = {{.key = "batch",
                           .label = mode == Mode::weak ? "local batch" : "global batch",
                           .format = Format::integer},
                          {.key = "workers", .label = "workers", .format = Format::integer},
                          {.key = "part", .label = "part"},
                          {.key = "points", .label = "points of efficiency", .format = Format::percent1},
                          {.key = "time", .label = "a step", .unit = "s", .format = Format::milliseconds},
                          {.key = "remedy", .label = "remedy"},
                          {.key = "saves", .label = "saves", .format = Format::percent1},
                          {.key = "together", .label = "together", .format = Format::percent1}}};
  Footnotes footnotes;
  for (const auto& losses : conclusions.losses)
    if (losses.mode == mode)
      for (const EfficiencyLoss& loss : losses.rows) add_rows(table, footnotes, losses, loss);
  if (table.rows.empty()) return std::nullopt;
  table.footnotes = footnotes.take();
  return table;
}

}  // namespace

std::optional<Section> efficiency_section(const Conclusions& conclusions) {
  Section section{.id = "efficiency", .title = "Where does the efficiency go?"};
  for (const Mode mode : {Mode::weak, Mode::strong})
    if (auto table = table_of(conclusions, mode)) section.blocks.emplace_back(std::move(*table));
  if (section.blocks.empty()) return std::nullopt;
  return section;
}

}  // namespace paceline::report

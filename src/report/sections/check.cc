#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "check/check.h"
#include "check/ratios.h"
#include "check/rule.h"
#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using check::Finding;
using check::Result;
using check::Severity;

/// In the unit of the printed figure, which a finding does not name; so the number has no fixed digits.
TableCell corrected_cell(const Finding& finding) {
  if (!finding.corrected) return missing("no single figure can be given");
  TableCell cell{.value = finding.corrected->value};
  if (finding.corrected->low < finding.corrected->high) {
    cell.low = finding.corrected->low;
    cell.high = finding.corrected->high;
  }
  return cell;
}

Table findings_table(const Result& result, const char* id) {
  Table shown{
      .id = id,
      .title = "Printed and corrected",
      .definition =
          "Error: contradicts itself, or follows from a known mistake. Warning: may be wrong, or is weaker than it "
          "looks. Corrected: with all that the printed digits and the noise of the times allow.",
      .columns = {{.key = "severity", .label = "severity"},
                  {.key = "rule", .label = "rule"},
                  {.key = "row", .label = "row"},
                  {.key = "printed", .label = "printed"},
                  {.key = "corrected", .label = "corrected", .format = Format::seconds},
                  {.key = "why", .label = "why"}}};
  for (const auto& finding : result.findings)
    shown.rows.push_back(
        {words(std::string(check::name(finding.severity))), words(finding.rule),
         words(fmt::format("{}", fmt::join(finding.rows, ", "))),
         finding.printed.empty() ? missing("the finding is not about one figure") : words(finding.printed),
         corrected_cell(finding), words(finding.sentence)});
  return shown;
}

/// Speedups against workers, as printed and as calculated from the times.
std::optional<Plot> speedup_plot(const table::Table& table, const Result& result) {
  std::map<std::string, const Finding*> wrong;
  for (const auto& finding : result.findings)
    if (finding.rule == "ratio.speedup") wrong[finding.rows.front()] = &finding;
  if (wrong.empty()) return std::nullopt;
  Series printed{.name = "printed", .dashed = true}, corrected{.name = "corrected"};
  for (const auto& row : table.rows) {
    const auto n = row.value("workers"), claim = row.value("claimed_speedup");
    if (!n || !claim) continue;
    printed.points.push_back({.x = *n, .y = *claim});
    const auto found = wrong.find(row.name());
    Point point{.x = *n, .y = *claim};
    if (found != wrong.end() && found->second->corrected) {
      const auto& right = *found->second->corrected;
      point = {.x = *n, .y = right.value, .low = right.low, .high = right.high, .mark = "corrected"};
    }
    corrected.points.push_back(point);
  }
  return Plot{.id = "check-speedup",
              .title = "Speedup, printed and corrected",
              .caption = fmt::format("{} of {} printed speedups do not follow from the times beside them.",
                                     wrong.size(), printed.points.size()),
              .x = {.label = "workers"},
              .y = {.label = "speedup"},
              .series = {printed, corrected}};
}

std::string text_about_result(const Result& result, std::string_view of_what) {
  const auto errors = result.number_of(Severity::error), warnings = result.number_of(Severity::warning);
  if (errors + warnings == 0 && result.compared == 0)
    return fmt::format("Nothing was compared in {}: no figure could be held against another.", of_what);
  if (errors + warnings == 0)
    return fmt::format("No rule found an error in {}; {} rules had no figures to check.", of_what,
                       result.not_checked.size());
  return fmt::format("{} and {} in {}.", counted(errors, "error"), counted(warnings, "warning"), of_what);
}

Paragraph verdict_on_result(const Result& result, std::string_view of_what) {
  const auto said = text_about_result(result, of_what);
  return result.number_of(Severity::error) > 0 ? warning(said) : finding(said);
}

struct Part {
  table::Column column;
  const char* label;
};

constexpr Part kTableParts[] = {{"compute_s", "compute"},      {"communication_s", "communication"},
                                {"data_wait_s", "data wait"},  {"update_s", "update"},
                                {"other_s", "copy and other"}, {"not_attributed_s", "not attributed"}};

TableCell part_cell(const table::Row& row, table::Column column) {
  if (const auto known = row.value(column)) return value(*known);
  return row.is_unknown(column) ? words("unknown") : missing("not said");
}

}  // namespace

Section check_section(const table::Table& table) {
  const auto result = check::check_table(table);
  Section section{.id = "check", .title = "What holds, and what does not"};
  section.blocks.emplace_back(verdict_on_result(result, "this table"));
  if (!result.findings.empty()) section.blocks.emplace_back(findings_table(result, "check-findings"));
  add_block(section.blocks, speedup_plot(table, result));
  std::map<std::string, std::vector<std::string>> by_missing;
  for (const auto& one : result.not_checked) by_missing[one.missing].push_back(one.rule);
  Table not_checked{.id = "check-not-checked",
                    .title = "Not checked",
                    .columns = {{.key = "missing", .label = "missing"}, {.key = "rules", .label = "rules"}}};
  for (const auto& [missing_columns, rules] : by_missing)
    not_checked.rows.push_back({words(missing_columns), words(fmt::format("{}", fmt::join(rules, ", ")))});
  if (!not_checked.rows.empty()) section.blocks.emplace_back(std::move(not_checked));
  return section;
}

std::optional<Section> check_section(std::span<const measure::Record> records) {
  const auto result = check::check_records(records);
  if (result.number_of(Severity::error) + result.number_of(Severity::warning) == 0) return std::nullopt;
  Section section{.id = "check-records", .title = "What holds, and what does not"};
  section.blocks.emplace_back(verdict_on_result(result, "these records"));
  section.blocks.emplace_back(findings_table(result, "check-records-findings"));
  return section;
}

std::optional<Section> table_parts_section(const table::Table& table) {
  const auto has_part = [](const table::Row& row) {
    return row.knows("time_s") &&
           std::ranges::any_of(kTableParts, [&](const Part& part) { return row.knows(part.column); });
  };
  Section section{.id = "table-parts", .title = "Where the time goes, as far as it is known"};
  Table shown{
      .id = "table-parts",
      .title = "Time and its parts",
      .definition =
          "Unknown: the source does not say it. Not attributed: the rest of the time, whose cause is not "
          "known.",
      .columns = {{.key = "run", .label = "run"},
                  {.key = "workers", .label = "workers", .format = Format::integer},
                  {.key = "of", .label = "of"},
                  {.key = "time", .label = "time", .unit = "s", .format = Format::seconds}}};
  for (const auto& part : kTableParts)
    shown.columns.push_back({.key = part.label, .label = part.label, .unit = "s", .format = Format::seconds});
  Plot plot{.id = "table-parts-plot",
            .kind = PlotKind::stacked_bar,
            .title = "Parts of the time",
            .caption = "What is not known, or not attributed, is a part of its own.",
            .x = {.label = "run"},
            .y = {.label = "time", .unit = "s"}};
  for (const auto& part : kTableParts) plot.series.push_back({.name = part.label});
  plot.series.push_back({.name = "unknown"});
  for (const auto& row : table.rows) {
    if (!has_part(row)) continue;
    std::vector<TableCell> cells{words(row.name()), part_cell(row, "workers"), words(row.text("time_of")),
                                 value(*row.value("time_s"))};
    const auto x = static_cast<double>(plot.categories.size());
    double known = 0;
    for (std::size_t i = 0; i < std::size(kTableParts); ++i) {
      cells.push_back(part_cell(row, kTableParts[i].column));
      const double seconds = row.value(kTableParts[i].column).value_or(0);
      known += seconds;
      plot.series[i].points.push_back({.x = x, .y = seconds});
    }
    plot.series.back().points.push_back({.x = x, .y = std::max(0.0, *row.value("time_s") - known)});
    plot.categories.push_back(row.name());
    shown.rows.push_back(std::move(cells));
  }
  if (shown.rows.empty()) return std::nullopt;
  for (const auto& note : table.notes) section.blocks.emplace_back(plain(note + "."));
  section.blocks.emplace_back(std::move(shown));
  section.blocks.emplace_back(std::move(plot));
  return section;
}

}  // namespace paceline::report

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "analysis/compare/interval.h"
#include "report/answers/wording.h"
#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using measure::Record;

/// Numbers by size, then words: 8, 32, 128, linear, none.
struct NaturalOrder {
  bool operator()(const std::string& a, const std::string& b) const {
    char* end_a = nullptr;
    char* end_b = nullptr;
    const double x = std::strtod(a.c_str(), &end_a);
    const double y = std::strtod(b.c_str(), &end_b);
    const bool a_is_number = !a.empty() && *end_a == 0;
    const bool b_is_number = !b.empty() && *end_b == 0;
    if (a_is_number != b_is_number) return a_is_number;
    return a_is_number && x != y ? x < y : a < b;
  }
};
using Values = std::set<std::string, NaturalOrder>;

/// The values of each setting in all records. A batch of 0 (local or global) is derived from the other one.
std::map<std::string, Values> values_of_settings(std::span<const Record> records) {
  std::map<std::string, Values> values;
  for (const Record& record : records)
    for (const auto& [name, value] : record.settings) {
      const bool is_derived = name.ends_with("-batch") && value == "0";
      values[name].insert(is_derived ? "derived" : value);
    }
  return values;
}

Table settings_table(std::span<const Record> records) {
  Table table{.id = "settings",
              .title = "Settings",
              .definition = "Every option that can change a figure. Several values: these were varied.",
              .columns = {{.key = "setting", .label = "setting"}, {.key = "value", .label = "value"}}};
  for (const auto& [name, values] : values_of_settings(records))
    table.rows.push_back({words("--" + name), words(fmt::format("{}", fmt::join(values, ", ")))});
  return table;
}

/// "record" or "record (and 11 more like it)": the record whose numbers are in the sentence.
std::string text_about_remark(const Remark& remark) {
  const std::size_t more = remark.records.size() - 1;
  return more == 0 ? remark.records.front()
                   : fmt::format("{} (and {} more like it)", remark.records.front(), more);
}

/// The runs' own notes.
std::vector<Remark> notes_of(std::span<const Record> records) {
  std::vector<Remark> notes;
  for (const Record& record : records)
    for (const std::string& note : record.notes) add_remark(notes, {.text = note}, record.id);
  return notes;
}

Table circumstances_table(const Conclusions& conclusions) {
  Table table{
      .id = "cells",
      .title = "Cells",
      .definition =
          "One configuration a row. Steps: measured, of all repeats together, after the warm-up of each. "
          "Used by others: cores that other programs kept busy during the window, the highest of the "
          "repeats.",
      .columns = {{.key = "part", .label = "part"},
                  {.key = "cell", .label = "cell"},
                  {.key = "status", .label = "status"},
                  {.key = "repeats", .label = "repeats", .format = Format::integer},
                  {.key = "warmup", .label = "warm-up steps", .format = Format::integer},
                  {.key = "steps", .label = "measured steps", .format = Format::integer},
                  {.key = "wall", .label = "wall", .unit = "s", .format = Format::seconds},
                  {.key = "others", .label = "used by others", .unit = "cores", .format = Format::fixed2}}};
  Footnotes footnotes;
  for (const auto& cell : conclusions.cells) {
    footnotes.explain_marks(cell);
    std::vector<TableCell> row{words(cell.part()), with_mark(words(cell.label), marks_of(cell)),
                               words(cell.status)};
    if (!cell.is_measured()) {
      row.insert(row.end(), 5, missing(cell.why_not_measured()));
    } else {
      double wall = 0;
      std::optional<double> others;
      for (const Record* record : cell.records) {
        wall += record->window.wall_s;
        if (record->window.others_cores) others = std::max(others.value_or(0), *record->window.others_cores);
      }
      row.insert(row.end(), {value(cell.records.size()), value(cell.record().window.warmup_steps),
                             value(cell.steps_measured), value(wall),
                             value(others, "not known: a window under one second")});
    }
    table.rows.push_back(std::move(row));
  }
  table.footnotes = footnotes.take();
  return table;
}

}  // namespace

std::string text_about_checksums(std::span<const Record* const> records) {
  const auto without = std::ranges::count(records, false, &Record::has_checksum);
  return without == 0 ? "" : fmt::format("{} of {} records carry no checksum", without, records.size());
}
std::string text_about_checksums(std::span<const Record> records) {
  std::vector<const Record*> all;
  for (const auto& record : records) all.push_back(&record);
  return text_about_checksums(all);
}

std::string trust_of(const Conclusions& conclusions) {
  std::vector<double> halves;
  for (const auto& cell : conclusions.cells)
    if (cell.is_timed() && cell.is_measured() && !cell.oversubscribed &&
        analysis::has_interval(cell.images_per_s))
      halves.push_back(std::max(cell.images_per_s.high / cell.images_per_s.median - 1,
                                1 - cell.images_per_s.low / cell.images_per_s.median));
  const bool is_of_quick = is_quick(conclusions.records.front());
  std::vector<std::string> parts;
  if (const auto [all, unmeasured] = conclusions.stopped_study(); unmeasured > 0)
    parts.push_back(fmt::format("stopped{} study: {} of {} runs not measured", is_of_quick ? " quick" : "",
                                unmeasured, all));
  if (!halves.empty()) {
    std::sort(halves.begin(), halves.end());
    parts.push_back(fmt::format("{}typical interval ±{} %, widest ±{} %",
                                parts.empty() && is_of_quick ? "quick study: " : "",
                                rough(100 * halves[halves.size() / 2]), rough(100 * halves.back())));
  }
  if (auto text = text_about_checksums(conclusions.records); !text.empty()) parts.push_back(std::move(text));
  return fmt::format("{}", fmt::join(parts, "; "));
}

Section circumstances_section(const Conclusions& conclusions) {
  Section section{.id = "circumstances", .title = "How it was measured"};
  for (const Remark& remark : conclusions.remarks) {
    const std::string text = fmt::format("{}: {}.", text_about_remark(remark), remark.finding.text);
    section.blocks.push_back(remark.finding.is_error ? warning(text) : plain(text));
  }
  for (const Remark& note : notes_of(conclusions.records))
    section.blocks.push_back(plain(fmt::format("{}: {}.", text_about_remark(note), note.finding.text)));
  section.blocks.push_back(settings_table(conclusions.records));
  if (!conclusions.cells.empty()) section.blocks.push_back(circumstances_table(conclusions));
  return section;
}

}  // namespace paceline::report

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using measure::Record;

/// Values that each setting takes over all records.
std::map<std::string, std::set<std::string>> values_of_settings(std::span<const Record> records) {
  std::map<std::string, std::set<std::string>> values;
  for (const Record& record : records)
    for (const auto& [name, value] : record.settings) values[name].insert(value);
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

std::string list_of(const std::vector<std::string>& ids) {
  constexpr std::size_t kShown = 3;
  const std::size_t shown = std::min(ids.size(), kShown);
  std::string text =
      fmt::format("{}", fmt::join(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (ids.size() > shown) text += fmt::format(" and {} more", ids.size() - shown);
  return text;
}

/// The runs' own notes, each once.
std::vector<Remark> notes_of(std::span<const Record> records) {
  std::vector<Remark> notes;
  for (const Record& record : records)
    for (const std::string& note : record.notes) {
      const auto same = std::find_if(notes.begin(), notes.end(),
                                     [&](const Remark& other) { return other.finding.text == note; });
      if (same != notes.end()) {
        same->records.push_back(record.id);
        continue;
      }
      Remark& fresh = notes.emplace_back();
      fresh.finding.text = note;
      fresh.records.push_back(record.id);
    }
  return notes;
}

Table runs_table(std::span<const Record> records) {
  Table table{
      .id = "records",
      .title = "Records",
      .definition = "One a run; repeats of a cell are interleaved in time.",
      .columns = {
          {.key = "id", .label = "record"},
          {.key = "status", .label = "status"},
          {.key = "warmup", .label = "warm-up steps", .format = Format::integer},
          {.key = "steps", .label = "measured steps", .format = Format::integer},
          {.key = "wall", .label = "wall", .unit = "s", .format = Format::seconds},
          {.key = "load", .label = "load before", .format = Format::fixed1},
          {.key = "first_step", .label = "first step after", .unit = "s", .format = Format::seconds}}};
  for (const Record& record : records) {
    const bool ran = record.window.steps > 0;
    const std::string why = record.reason.empty() ? record.status : record.reason;
    table.rows.push_back({words(record.id), words(record.status),
                          ran ? value(static_cast<double>(record.window.warmup_steps)) : missing(why),
                          ran ? value(static_cast<double>(record.window.steps)) : missing(why),
                          ran ? value(record.window.wall_s) : missing(why),
                          ran ? value(record.environment.load_before) : missing(why),
                          record.first_step_s ? value(*record.first_step_s) : missing("not measured")});
  }
  return table;
}

}  // namespace

Section circumstances_section(const Conclusions& conclusions) {
  Section section{.id = "circumstances", .title = "How it was measured"};
  for (const Remark& remark : conclusions.remarks) {
    const std::string text = fmt::format("{}: {}.", list_of(remark.records), remark.finding.text);
    section.blocks.push_back(remark.finding.is_error ? warning(text) : plain(text));
  }
  for (const Remark& note : notes_of(conclusions.records))
    section.blocks.push_back(plain(fmt::format("{}: {}.", list_of(note.records), note.finding.text)));
  section.blocks.push_back(settings_table(conclusions.records));
  section.blocks.push_back(runs_table(conclusions.records));
  return section;
}

}  // namespace paceline::report

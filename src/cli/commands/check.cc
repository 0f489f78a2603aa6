#include "cli/commands/commands.h"

#include <fmt/format.h>

#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "check/check.h"
#include "cli/screen/screen.h"
#include "report/build.h"
#include "table/import/import.h"

namespace paceline::cli {
namespace {

namespace fs = std::filesystem;

void join_records(Inputs& inputs, bool is_same_machine) {
  const auto& records = inputs.records.records;
  for (auto& table : inputs.tables) {
    const auto* row = check::row_over_record(table, records);
    if (row == nullptr) continue;
    if (!is_same_machine)
      base::fail(
          ErrorKind::usage,
          "{}: the baseline of {} is '{}', a record of Paceline: a row of a table is compared with a record "
          "only where --same-machine says that both were measured on one machine",
          table.where, row->name(), row->text("baseline"));
    table = check::with_named_records(std::move(table), records);
  }
}

using check::Result;
using check::Severity;

void append(Result& all, Result one) {
  all.findings.insert(all.findings.end(), one.findings.begin(), one.findings.end());
  all.has_unchecked_claims = all.has_unchecked_claims || one.has_unchecked_claims;
  all.compared += one.compared;
  for (auto& rule : one.not_checked) {
    const bool is_known = std::ranges::any_of(all.not_checked, [&](const auto& known) {
      return known.rule == rule.rule && known.missing == rule.missing;
    });
    if (!is_known) all.not_checked.push_back(std::move(rule));
  }
}

}  // namespace

Inputs read_inputs(const std::vector<fs::path>& paths, bool is_same_machine) {
  std::vector<fs::path> records, imported, tables;
  Inputs inputs;
  for (const auto& path : paths) {
    // Missing files and pipes (which can be read only once) are left to the reader of records.
    if (!base::is_file(path)) {
      records.push_back(path);
      continue;
    }
    const auto head = table::begin_of(path);
    const auto first = head.find_first_not_of(" \t\r\n");
    const bool is_json = first == std::string::npos || head[first] == '{' || path.extension() == ".json";
    if (head.find("\"paceline-record-") != std::string::npos)
      records.push_back(path);
    else if (table::looks_like_table(head))
      tables.push_back(path);
    else if (table::find_importer(path, head) != nullptr)
      imported.push_back(path);
    else if (is_json)
      records.push_back(path);
    else
      base::fail(ErrorKind::data, "{}: is neither a record nor a table, and {}", path.string(),
                 table::why_not_read(head));
  }
  if (!records.empty()) inputs.records = read_records(records);
  std::set<std::string> ids;
  for (const auto& record : inputs.records.records) ids.insert(record.id);
  for (const auto& path : tables)
    for (const auto& text : table::split_tables(base::read_file(path)))
      inputs.tables.push_back(table::read_table(text, path.string(), ids));
  for (auto& table : table::import_files(imported, {})) inputs.tables.push_back(std::move(table));
  join_records(inputs, is_same_machine);
  return inputs;
}

int import_command(const Settings& settings) {
  const auto& options = settings.import;
  if (!options.out.empty()) base::require_directory_of(options.out, "--out");
  const auto tables = table::import_files(settings.report.records, options.set);
  std::string text;
  for (const auto& one : tables) {
    if (tables.size() > 1 && !text.empty())
      base::fail(
          ErrorKind::usage,
          "the files are of {} runs or programs, but one table holds one; import them one after the other",
          tables.size());
    text += table::to_csv(one);
  }
  if (options.out.empty()) {
    std::fputs(text.c_str(), stdout);
    return 0;
  }
  base::write_file(options.out, text);
  Screen screen(false);
  for (const auto& note : tables.front().notes) screen.say(note);
  screen.say("{}: {}", options.out.string(), base::counted(tables.front().rows.size(), "row"));
  return 0;
}

int check_command(const Settings& settings) {
  Screen screen(false);
  const auto& options = settings.check;
  if (!options.template_name.empty()) {
    std::fputs(table::template_text(options.template_name).c_str(), stdout);
    return 0;
  }
  for (const auto& [file, option] : {std::pair{options.json, "--json"}, std::pair{options.sarif, "--sarif"}})
    if (!file.empty()) base::require_directory_of(file, option);
  const auto inputs = read_inputs(settings.report.records, settings.report.is_same_machine);
  Result result;
  for (const auto& table : inputs.tables) append(result, check::check_table(table));
  if (!inputs.records.records.empty()) append(result, check::check_records(inputs.records.records));
  append(result, {.findings = check::check_between(inputs.tables), .not_checked = {}});
  check::sort_findings(result);
  result = check::one_per_mistake(std::move(result));
  report::CheckText text{.width = screen.breaks() ? static_cast<std::size_t>(screen.width()) : 0,
                         .shows_all = options.shows_all,
                         .notes = inputs.records.remarks};
  for (const auto& table : inputs.tables)
    for (const auto& note : table.notes) text.notes.push_back(table.where + ": " + note);
  for (const auto& line : report::check_lines(result, text)) screen.say(line);
  if (!options.json.empty()) base::write_file(options.json, report::check_json(result));
  if (!options.sarif.empty()) base::write_file(options.sarif, report::check_sarif(result));
  const bool fails = result.number_of(Severity::error) > 0 ||
                     (options.strict && (result.number_of(Severity::warning) > 0 ||
                                         result.has_unchecked_claims || result.compared == 0));
  return fails ? kDoesNotHold : 0;
}

}  // namespace paceline::cli

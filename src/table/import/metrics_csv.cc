/// Reads CSVs of metrics as training programs write them: `epoch`, `step`, and names of their own.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "table/import/import.h"
#include "table/table.h"

namespace paceline::table {
namespace {

using base::ErrorKind;

constexpr std::string_view kMapped[] = {"loss",   "accuracy",      "updates",   "steps",
                                        "time_s", "learning_rate", "rate_per_s"};

/// For each column of the table its column in the file: the one that the user names, otherwise the one of the
/// same name.
std::map<std::string, std::size_t> mapping(const CsvLine& header, const GivenFacts& given,
                                           const std::string& where, std::set<std::string>& taken) {
  std::vector<std::string> names;
  for (const auto& cell : header) names.emplace_back(trimmed(cell.text));
  std::map<std::string, std::size_t> columns;
  for (const auto name : kMapped) {
    const auto found = given.find(std::string(name));
    std::string wanted(name);
    if (found != given.end() && !read_number(found->second)) {
      wanted = found->second;
      taken.insert(std::string(name));
      if (std::ranges::find(names, wanted) == names.end())
        base::fail(ErrorKind::usage, "--set {}={}: {} has no such column{}", name, wanted, where,
                   base::suggestion(wanted, names));
    }
    const auto at = std::ranges::find(names, wanted);
    if (at != names.end()) columns[std::string(name)] = static_cast<std::size_t>(at - names.begin());
  }
  return columns;
}

std::size_t place_of(const CsvLine& header, std::string_view name) {
  for (std::size_t i = 0; i < header.size(); ++i)
    if (trimmed(header[i].text) == name) return i;
  return header.size();
}

Table read_metrics(std::span<const std::filesystem::path> files, const GivenFacts& given) {
  const auto where = files.front().string();
  const auto lines = read_csv(content_of(files.front()), where);
  Table table{.where = where};
  if (lines.size() < 2)
    base::fail(ErrorKind::data, "{}: the file has no metrics; was the training ended early?", where);
  const auto columns = mapping(lines.front(), given, where, table.taken);
  const auto epoch = place_of(lines.front(), "epoch"), step = place_of(lines.front(), "step");
  if (epoch == lines.front().size() && step == epoch)
    base::fail(
        ErrorKind::data,
        "{}: its header has no column 'epoch' or 'step'; name one so, or look for a misplaced quote in the header",
        where);
  std::map<std::string, std::size_t> by_epoch;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const auto& cells = lines[i];
    if (cells.size() != lines.front().size())
      base::fail(ErrorKind::data, "{}:{}: the line has {} cells, but the header has {}; was it cut?", where,
                 cells.front().line, cells.size(), lines.front().size());
    // Some programs write training and validation of an epoch in separate lines; they become one row.
    const auto& key = epoch < cells.size() ? cells[epoch].text : cells[step].text;
    const auto [found, is_new] = by_epoch.try_emplace(key, table.rows.size());
    if (is_new) {
      table.rows.emplace_back();
      table.rows.back().line = cells.front().line;
      table.rows.back().set("run", fmt::format("{} {}", epoch < cells.size() ? "epoch" : "step", key));
      if (epoch < cells.size()) table.rows.back().settings["epoch"] = key;
    }
    auto& row = table.rows[found->second];
    if (step < cells.size() && read_number(cells[step].text) && !columns.contains("steps"))
      row.set("steps", cells[step].text);
    for (const auto& [name, at] : columns) {
      if (!read_number(trimmed(cells[at].text))) continue;  // empty, or nan
      try {
        row.set(*Column::find(name), cells[at].text);
      } catch (const base::Error& error) {
        base::fail(ErrorKind::data, "{}:{}:{}: {} {}", where, cells[at].line, cells[at].column, name,
                   error.what());
      }
    }
  }
  std::string names;
  for (const auto& cell : lines.front())
    names += (names.empty() ? "" : ", ") + std::string(trimmed(cell.text));
  if (!columns.contains("loss") && !columns.contains("accuracy"))
    table.notes.push_back(fmt::format(
        "neither loss nor accuracy is known: give --set loss=COLUMN and --set accuracy=COLUMN, where COLUMN "
        "is one of {}",
        names));
  table.notes.push_back(
      "epochs and steps are as the trainer counts them, which may begin with 0; it is not known of which "
      "set the figures are: --set quality_of=validation says it");
  return table;
}

bool is_metrics(std::string_view head) {
  auto rest = head;
  const auto header = take_line(rest);
  if (header.find(',') == std::string_view::npos || header.find_first_of("{[<") != std::string_view::npos)
    return false;
  for (std::size_t at = 0; at <= header.size();) {
    const auto end = std::min(header.find(',', at), header.size());
    const auto name = trimmed(header.substr(at, end - at));
    if (name == "epoch" || name == "step") return true;
    at = end + 1;
  }
  return false;
}

}  // namespace

Importer metrics_csv() {
  return {.name = "a trainer's metrics CSV", .is_it = is_metrics, .read = read_metrics};
}

}  // namespace paceline::table

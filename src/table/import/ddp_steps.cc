/// Reads what share/paceline/paceline_ddp.py writes beside its table: every step of every rank of a trainer
/// that uses PyTorch's DistributedDataParallel.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "table/import/import.h"

namespace paceline::table {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kDdpSchema = "paceline-ddp-1";

/// Takes members of one file, each of which must be there and valid.
class DdpMembers {
 public:
  DdpMembers(const json& object, std::string where) : object_(object), where_(std::move(where)) {}

  [[nodiscard]] int count(const char* key, int least) const {
    const auto& found = member(object_, key);
    if (!found.is_number_integer() || found < least || found > 1'000'000)
      refuse(fmt::format("'{}' must be a whole number from {} to 1000000", key, least), found);
    return found.get<int>();
  }

  /// One number for each of `size` steps or buckets.
  [[nodiscard]] std::vector<double> numbers(const char* key, std::optional<std::size_t> size,
                                            bool may_be_zero = true) const {
    return numbers_of(member(object_, key), key, size, may_be_zero);
  }

  [[nodiscard]] std::vector<std::vector<double>> by_bucket(const char* key, std::size_t buckets,
                                                           std::size_t steps) const {
    const auto& found = member(object_, key);
    if (!found.is_array() || found.size() != buckets)
      refuse(fmt::format("'{}' must be a list for each of {} buckets", key, buckets), found);
    std::vector<std::vector<double>> all;
    for (const auto& one : found) all.push_back(numbers_of(one, key, steps, true));
    return all;
  }

  [[nodiscard]] const json& list(const char* key) const {
    const auto& found = member(object_, key);
    if (!found.is_array() || found.empty())
      refuse(fmt::format("'{}' must be a list that is not empty", key), found);
    return found;
  }

 private:
  [[noreturn]] void refuse(const std::string& rule, const json& actual) const {
    constexpr std::size_t kShown = 40;
    base::fail(
        base::ErrorKind::data, "{}: {}, but is {}; let paceline_ddp.py write the file again", where_, rule,
        actual.is_null()
            ? "missing"
            : shown_line(actual.dump(-1, ' ', true, json::error_handler_t::replace).substr(0, kShown)));
  }

  [[nodiscard]] std::vector<double> numbers_of(const json& found, const char* key,
                                               std::optional<std::size_t> size, bool may_be_zero) const {
    if (!found.is_array() || found.size() != size.value_or(found.size()))
      refuse(size ? fmt::format("'{}' must be a list of {} numbers", key, *size)
                  : fmt::format("'{}' must be a list of numbers", key),
             found);
    std::vector<double> all;
    for (const auto& one : found) {
      const double number = one.is_number() ? one.get<double>() : -1;
      if (!std::isfinite(number) || number < 0 || (number == 0 && !may_be_zero))
        refuse(fmt::format("each of '{}' must be a number {} 0", key, may_be_zero ? "of at least" : "above"),
               one);
      all.push_back(number);
    }
    return all;
  }

  const json& object_;
  std::string where_;
};

Row row_of_cells(const json& cells, const std::string& where) {
  Row row;
  if (!cells.is_object())
    base::fail(base::ErrorKind::data, "{}: it has no 'row'; let paceline_ddp.py write the file again", where);
  for (const auto& [name, value] : cells.items()) {
    const auto text = value.is_string() ? value.get<std::string>() : "";
    if (name.starts_with(kSettingPrefix)) {
      row.settings[name.substr(kSettingPrefix.size())] = text;
      continue;
    }
    const auto column = Column::find(name);
    if (!column)
      base::fail(base::ErrorKind::data,
                 "{}: its row has '{}', but a table has no such column; give Measured such a fact as "
                 "'setting.{}'",
                 where, shown_line(name), shown_line(name));
    try {
      row.set(*column, text);
    } catch (const base::Error& error) {
      base::fail(base::ErrorKind::data, "{}: {} {}", where, name, error.what());
    }
  }
  return row;
}

DdpRank rank_of(const json& object, const std::string& where, std::size_t steps, std::size_t buckets) {
  const DdpMembers members(object, where);
  DdpRank rank{.rank = members.count("rank", 0),
               .host = members.count("host", 0),
               .samples = members.count("samples", 0),
               .step_s = members.numbers("step_s", steps, false),
               .data_s = members.numbers("data_s", steps),
               .forward_s = members.numbers("forward_s", steps),
               .buffers_s = members.numbers("buffers_s", steps),
               .backward_s = members.numbers("backward_s", steps),
               .last_backward_s = members.numbers("last_backward_s", steps),
               .exposed_s = members.numbers("exposed_s", steps),
               .late_s = {},
               .ready_s = members.by_bucket("ready_s", buckets, steps),
               .end_s = members.by_bucket("end_s", buckets, steps)};
  if (object.contains("late_s")) rank.late_s = members.numbers("late_s", steps);
  return rank;
}

Table read_ddp_runs(std::span<const fs::path> files, const GivenFacts&) {
  Table table{.where = files.front().string()};
  for (const auto& file : files) {
    auto run = read_ddp_run(file);
    for (const auto& note : run.notes)
      table.notes.push_back(files.size() > 1 ? fmt::format("{}: {}", run.row.name(), note) : note);
    table.rows.push_back(std::move(run.row));
  }
  std::ranges::stable_sort(table.rows, {}, [](const Row& row) { return row.value("workers").value_or(0); });
  return table;
}

bool is_ddp_run(std::string_view head) {
  return head.find(fmt::format("\"{}\"", kDdpSchema)) != std::string_view::npos;
}

}  // namespace

DdpRun read_ddp_run(const fs::path& path) {
  const auto file = read_json(path);
  const auto where = path.string();
  if (text_at(file, "schema") != kDdpSchema)
    base::fail(base::ErrorKind::data, "{}: its schema is not {}; paceline_ddp.py writes such files", where,
               kDdpSchema);
  const DdpMembers members(file, where);
  DdpRun run{.row = row_of_cells(member(file, "row"), where),
             .workers = members.count("workers", 1),
             .hosts = members.count("hosts", 1),
             .steps = members.numbers("steps", std::nullopt),
             .bucket_bytes = members.numbers("bucket_bytes", std::nullopt, false),
             .ranks = {},
             .notes = {}};
  if (run.steps.empty() || run.bucket_bytes.empty())
    base::fail(base::ErrorKind::data, "{}: it has no {}; let the trainer make more than its warm-up steps",
               where, run.steps.empty() ? "steps" : "buckets");
  for (const auto& one : members.list("ranks"))
    run.ranks.push_back(rank_of(one, where, run.steps.size(), run.bucket_bytes.size()));
  for (const auto& rank : run.ranks)
    if (rank.rank >= run.workers || rank.host >= run.hosts)
      base::fail(
          base::ErrorKind::data,
          "{}: rank {} on host {} is none of {} workers on {}; let paceline_ddp.py write the file again",
          where, rank.rank, rank.host, run.workers, base::counted(run.hosts, "host"));
  for (const auto& note : member(file, "notes"))
    if (note.is_string()) run.notes.push_back(note.get<std::string>());
  return run;
}

Importer ddp_run() {
  return {
      .name = "steps of paceline_ddp.py", .is_it = is_ddp_run, .read = read_ddp_runs, .joins_files = true};
}

}  // namespace paceline::table

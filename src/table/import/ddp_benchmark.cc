/// Reads the output of PyTorch's benchmark of DistributedDataParallel: seconds per step of each model, for
/// growing sets of ranks.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "table/import/import.h"

namespace paceline::table {
namespace {

using nlohmann::json;

/// The row for one set of ranks; nullopt if it has no times.
std::optional<Row> row_of_result(const json& result, std::size_t workers) {
  std::vector<double> seconds;
  for (const auto& one : member(result, "measurements"))
    if (one.is_number() && one.get<double>() > 0 && std::isfinite(one.get<double>()))
      seconds.push_back(one.get<double>());
  if (seconds.empty()) return std::nullopt;
  const auto [median, sd] = scatter_of(seconds);
  Row row;
  row.set("program", "PyTorch DDP benchmark");
  row.set("workers", static_cast<double>(workers));
  row.set("time_s", median);
  row.set("time_of", "step");
  row.set("statistic", "median");
  row.set("repeats", static_cast<double>(std::max<std::size_t>(1, seconds.size() / workers)));
  if (seconds.size() > 1) {
    row.set("spread_s", sd);
    row.set("spread_is", "sd");
  }
  for (const Column column : {Column("compute_s"), Column("communication_s"), Column("data_wait_s")})
    row.set(column, "unknown");
  return row;
}

Table read_ddp(std::span<const std::filesystem::path> files, const GivenFacts&) {
  const auto file = read_json(files.front());
  Table table{.where = files.front().string()};
  for (const auto& benchmark : member(file, "benchmark_results")) {
    const auto model = text_at(benchmark, "model").value_or("");
    const auto batch = number_at(benchmark, "batch_size");
    std::size_t of_one_rank = 0;
    for (const auto& result : member(benchmark, "result")) {
      const auto& ranks = member(result, "ranks");
      const std::size_t workers = ranks.is_array() ? ranks.size() : 0;
      if (workers == 0) continue;
      auto row = row_of_result(result, workers);
      if (!row) continue;
      // Of the two results with rank 0 alone the first is without DDP.
      const bool is_plain = workers == 1 && of_one_rank++ == 0;
      row->settings["ddp"] = is_plain ? "no" : "yes";
      if (const auto bucket = text_at(file, "bucket_size")) row->settings["bucket"] = *bucket;
      row->set("run", fmt::format("{} {}{}", model, workers, is_plain ? " without ddp" : ""));
      row->set("model", model);
      if (batch && *batch >= 1) row->set("local_batch", std::round(*batch));
      table.rows.push_back(std::move(*row));
    }
  }
  if (table.rows.empty())
    base::fail(base::ErrorKind::data, "{}: no result has a measurement; the benchmark was ended early",
               table.where);
  table.notes.push_back(
      "the images/s that this benchmark prints are those of one worker; its file has seconds a step, and no parts of "
      "them");
  return table;
}

bool is_ddp(std::string_view head) { return head.find("\"benchmark_results\"") != std::string_view::npos; }

}  // namespace

Importer ddp_benchmark() { return {.name = "PyTorch DDP benchmark JSON", .is_it = is_ddp, .read = read_ddp}; }

}  // namespace paceline::table

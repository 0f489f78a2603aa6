/// From files to what a prediction is made of.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "cli/commands/commands.h"
#include "comm/emulate.h"
#include "table/import/import.h"

namespace paceline::cli {
namespace {

using analysis::MeasuredStep;
using analysis::StepModel;
using table::Row;

constexpr double kFloatBytes = 4;
/// torch.nn.parallel.DistributedDataParallel's bucket_cap_mb, in MiB; the first bucket is smaller.
constexpr double kBucketBytes = 25 * 1048576.0;

/// The step of a row in seconds, with half a unit of its last digit; none: the row has no times of steps.
struct RowTime {
  double seconds = 0, half_unit = 0;
};
std::optional<RowTime> step_time(const Row& row) {
  if (const auto time = row.number("time_s"); time && time->value > 0 && row.text("time_of") == "step")
    return RowTime{time->value, time->half_unit};
  const auto rate = row.number("rate_per_s");
  const auto workers = row.value("workers").value_or(1);
  const auto local = row.value("local_batch"), global = row.value("global_batch");
  if (!rate || rate->value <= 0 || (!local && !global)) return std::nullopt;
  const double all = row.text("rate_of") == "worker" ? rate->value * workers : rate->value;
  const double seconds = (global ? *global : *local * workers) / all;
  return RowTime{seconds, seconds * rate->half_unit / rate->value};
}

/// Standard deviation of the median or mean that the row gives.
double spread_of(const Row& row) {
  const double spread = row.value("spread_s").value_or(0),
               repeats = std::max(1.0, row.value("repeats").value_or(1));
  const auto& is = row.text("spread_is");
  if (is == "sd") return spread / std::sqrt(repeats);
  if (is == "ci95") return spread / 1.96;
  return spread;  // a standard error, or a range, which is wider
}

/// Errors   Error(data): no whole number from 1 to 2^20
int workers_of(const Row& row) {
  constexpr double kMost = 1 << 20;
  const double workers = row.value("workers").value_or(1);
  if (!(workers >= 1 && workers <= kMost && workers == std::floor(workers)))
    base::fail(ErrorKind::data, "{}: workers must be a whole number from 1 to {}, got {}", row.name(), kMost,
               workers);
  return static_cast<int>(workers);
}

MeasuredStep measured_row(const Row& row, const RowTime& time, double batch) {
  using analysis::Line;
  MeasuredStep step;
  step.workers = workers_of(row);
  const double nodes = std::max(1.0, row.value("nodes").value_or(1));
  step.width = static_cast<int>(std::ceil(step.workers / nodes));
  step.batch = batch;
  step.name = row.name();
  const auto line = [&](Line one, table::Column column) { step.middle[one] = row.value(column).value_or(0); };
  line(Line::data_wait, "data_wait_s");
  line(Line::update, "update_s");
  line(Line::other, "other_s");
  if (row.text("communication_is") == "exposed" || row.text("communication_is") == "residual")
    line(Line::transfer, "communication_s");
  const double rest = time.seconds - step.middle.total();
  step.middle[Line::compute] = std::max(0.0, rest);
  step.step_s = {.median = time.seconds, .low = time.seconds, .high = time.seconds, .n = 1};
  const double sd = spread_of(row);
  if (sd == 0 && time.half_unit == 0) return step;
  for (std::size_t i = 0; i < analysis::kForecastDraws; ++i) {
    base::Rng rng(0, base::Purpose::bootstrap, i, static_cast<std::uint64_t>(1000 + row.line));
    const double seconds =
        time.seconds + time.half_unit * (2 * rng.uniform_f64() - 1) + sd * static_cast<double>(rng.normal());
    step.draws.push_back(step.middle.scaled(std::max(0.01, seconds / time.seconds)));
  }
  return step;
}

/// Refuses a table whose rows are of two configurations.
void require_one_text(const std::vector<const Row*>& rows, const table::Table& table, table::Column column) {
  const Row* known = nullptr;
  for (const Row* row : rows) {
    if (!row->knows(column)) continue;
    if (known != nullptr && known->text(column) != row->text(column))
      base::fail(
          ErrorKind::data,
          "{}: the rows are of two texts in the column {}: '{}' in line {} and '{}' in line {}; a prediction is "
          "of one: leave the others out",
          table.where, column.name(), known->text(column), known->line, row->text(column), row->line);
    known = row;
  }
}

std::vector<analysis::TimedAllReduce> timed_of(const table::Table& table) {
  std::vector<analysis::TimedAllReduce> timed;
  for (const auto& row : table.rows) {
    const auto bytes = row.value("message_bytes"), seconds = row.value("time_s"),
               ranks = row.value("workers");
    if (bytes && seconds && ranks && *bytes > 0 && *seconds > 0 && *ranks > 1)
      timed.push_back({.ranks = workers_of(row), .bytes = *bytes, .seconds = *seconds});
  }
  if (timed.empty())
    base::fail(ErrorKind::data, "{}: has no timed all-reduces: a row needs message_bytes, time_s and workers",
               table.where);
  return timed;
}

struct TimedLink {
  std::vector<analysis::TimedAllReduce> timed;
  int workers_per_node = 0;  ///< of the measurement; 0: not known
  std::string emulated;      ///< a sentence, if it was timed over an emulated link
};

TimedLink timed_of(const measure::Record& record, const std::string& where) {
  TimedLink link;
  if (record.collectives)
    for (const auto& one : *record.collectives)
      if (one.collective == "all_reduce" && one.in_place && !one.seconds.empty() && one.bytes > 0)
        link.timed.push_back({.ranks = record.workers,
                              .bytes = static_cast<double>(one.bytes),
                              .seconds = measure::quantile(one.seconds, 0.5)});
  if (link.timed.empty() || record.workers < 2)
    base::fail(ErrorKind::data, "{}: has no timed all-reduces: --link takes a record of paceline comm",
               where);
  if (const auto* text = measure::find_text(record.settings, "emulate-link");
      text != nullptr && !text->empty())
    link.emulated =
        fmt::format("{} was timed over an EMULATED link ({}): it shows no real network", where, *text);
  link.workers_per_node = (record.workers + analysis::nodes(record) - 1) / analysis::nodes(record);
  return link;
}

TimedLink read_link(const std::filesystem::path& path) {
  const auto inputs = read_inputs({path}, false);
  if (!inputs.records.records.empty()) return timed_of(inputs.records.records.front(), path.string());
  return {.timed = timed_of(inputs.tables.front())};
}

}  // namespace

StepModel step_model_of(const table::Table& table) {
  std::vector<const Row*> rows;
  for (const auto& row : table.rows)
    if (step_time(row)) rows.push_back(&row);
  if (rows.empty())
    base::fail(ErrorKind::data,
               "{}: no row has the time of a step: time_s with time_of = step, or rate_per_s with a batch",
               table.where);
  for (const table::Column column :
       {table::Column("model"), table::Column("program"), table::Column("device")})
    require_one_text(rows, table, column);
  StepModel model;
  for (const Row* row : rows) {
    const auto local = row->value("local_batch"), global = row->value("global_batch");
    const double workers = row->value("workers").value_or(1);
    const double batch = local ? *local : global ? *global / workers : row->value("batch").value_or(1);
    auto step = measured_row(*row, *step_time(*row), batch);
    const auto same = std::find_if(model.steps.begin(), model.steps.end(), [&](const auto& one) {
      return one.workers == step.workers && one.batch == step.batch;
    });
    if (same != model.steps.end())
      base::fail(ErrorKind::data, "{}: {} and {} are of {} workers at one batch; leave one out", table.where,
                 same->name, step.name, step.workers);
    model.steps.push_back(std::move(step));
  }
  std::stable_sort(model.steps.begin(), model.steps.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.workers, a.batch) < std::tuple(b.workers, b.batch);
  });
  for (const auto& step : model.steps) model.width = std::max(model.width, step.width);
  const Row& first = *rows.front();
  model.subject = {.model = first.text("model"), .device = first.text("device")};
  model.train_samples = first.value("train_samples").value_or(0);
  model.own = {.others = {1}, .slowest = {}};
  model.unknown.emplace_back(
      "a table has no own work of steps: waiting for the slowest worker is not predicted");
  model.unknown.emplace_back(
      "backward is assumed to be two thirds of computing: it has twice the operations of forward");
  if (const auto parameters = first.value("parameters"); parameters && *parameters > 0) {
    const double bytes = *parameters * first.value("element_bytes").value_or(kFloatBytes);
    const double count = std::max(1.0, std::ceil(bytes / kBucketBytes));
    for (double i = 1; i <= count; ++i) model.buckets.push_back({.bytes = bytes / count, .ready = i / count});
    model.unknown.emplace_back(
        "the table has no buckets: of 25 MiB (PyTorch's default), ready evenly over backward, is assumed");
  } else {
    model.unknown.emplace_back("the table has no parameters: transfers are not predicted");
  }
  return model;
}

std::optional<analysis::AddedLink> emulated_link(std::span<const measure::Record> records) {
  for (const auto& record : records) {
    const auto* text = measure::find_text(record.settings, "emulate-link");
    if (text == nullptr || text->empty()) continue;
    const auto link = comm::parse_link(*text);
    return analysis::AddedLink{.latency_s = analysis::Range::of(link.latency_s),
                               .bytes_per_s = analysis::Range::of(link.bytes_per_s),
                               .between_nodes = link.between_hosts,
                               .per_host = link.per_host,
                               .inside_latency_s = analysis::Range::of(link.inside_latency_s),
                               .inside_bytes_per_s = analysis::Range::of(link.inside_bytes_per_s),
                               .per_switch = link.per_switch,
                               .oversubscription = link.oversubscription};
  }
  return std::nullopt;
}

analysis::ForecastRequest forecast_request(const Settings::Predict& options, const StepModel& model,
                                           std::span<const measure::Record> records,
                                           std::vector<std::string>& remarks) {
  analysis::ForecastRequest request;
  request.workers = options.workers;
  request.emulated = emulated_link(records);
  auto& cluster = request.cluster;
  if (!options.cluster.empty()) {
    analysis::MeasuredFiles files;
    cluster = analysis::read_cluster(options.cluster, &files);
    for (const auto& file : {files.node_link, files.network})
      if (file) analysis::attach(*cluster, read_link(*file).timed);
    // A preset is a machine that its records were not taken on, except for a network by its name alone.
    const auto& preset = cluster->preset;
    const bool is_network = preset.starts_with("eth-");
    request.is_other_hardware =
        (!preset.empty() && !is_network) || cluster->worker_speed != analysis::Range::of(1);
    if (is_network && preset == options.cluster) {  // the nodes are those of the records
      const auto measured = analysis::measured_cluster(model, request.emulated);
      cluster->workers_per_node = model.width;
      cluster->node_link = measured.node_link;
    }
  }
  if (options.link.empty()) return request;
  const auto link = read_link(options.link);
  if (!link.emulated.empty()) remarks.push_back(link.emulated);
  if (!cluster) {
    cluster = analysis::measured_cluster(model, request.emulated);
    if (link.workers_per_node > 0) {
      cluster->workers_per_node = std::max(model.width, link.workers_per_node);
      cluster->nodes = ((1 << 20) + cluster->workers_per_node - 1) / cluster->workers_per_node;
    }
  }
  analysis::attach(*cluster, link.timed);
  return request;
}

}  // namespace paceline::cli

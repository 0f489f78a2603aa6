#include "check/record_rows.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "measure/ledger.h"
#include "measure/statistics.h"

namespace paceline::check {
namespace {

using measure::Phase;
using measure::Record;
using table::Column;
using table::Row;

template <typename T>
void set_positive(Row& row, Column column, T value) {
  if (value > 0) row.set(column, static_cast<double>(value));
}

void set_text(Row& row, Column column, std::string_view text) {
  if (!text.empty()) row.set(column, text);
}

std::string safe(const std::string& text) {
  const bool is_formula = text.size() > 1 &&
                          std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos &&
                          !table::read_number(text).has_value();
  return is_formula ? "'" + text : text;
}

void add_configuration(Row& row, const Record& record) {
  row.set("run", safe(record.id));
  row.set("program", "paceline");
  set_text(row, "model", safe(record.model.name));
  set_text(row, "device", safe(record.device_name.value_or(record.device)));
  set_positive(row, "nodes", record.communication.nodes.value_or(1));
  set_positive(row, "workers", record.workers);
  row.set("repeat", static_cast<double>(record.repeat));
  set_positive(row, "local_batch", record.local_batch);
  set_positive(row, "global_batch", record.global_batch);
  set_positive(row, "train_samples", record.data.train_samples);
  set_positive(row, "test_samples", record.data.test_samples);
  set_positive(row, "parameters", record.model.parameters);
  set_positive(row, "flops_per_sample", record.model.training_flops);
  if (record.scaling == "weak" || record.scaling == "strong") row.set("scaling", record.scaling);
  for (const auto& [name, text] : record.settings) {
    row.settings[name] = safe(text);
    if (name == "seed" && table::read_number(text)) row.set("seed", text);
    if (name == "optimizer") set_text(row, "optimizer", safe(text));
  }
  set_positive(row, "learning_rate", record.learning_rate.peak);
}

/// Adds the seconds of a step and their parts: means over the window's steps and over ranks.
void add_times(Row& row, const Record& record) {
  if (record.ranks.empty() || record.ranks.front().step_s.empty() || record.window.steps <= 0) return;
  const auto steps = static_cast<double>(record.window.steps);
  const auto of_step = [&](auto seconds_of) {
    double sum = 0;
    for (const auto& rank : record.ranks) sum += seconds_of(rank);
    return sum / steps / static_cast<double>(record.ranks.size());
  };
  const auto phase = [&](Phase which) {
    return of_step([&](const auto& rank) { return rank.phases[static_cast<std::size_t>(which)]; });
  };
  // A training's evaluations and checkpoints are not part of its steps.
  const double time = of_step([](const auto& rank) { return rank.wall_s; }) - phase(Phase::evaluation) -
                      phase(Phase::checkpoint);
  row.set("time_s", time);  // `repeats` counts runs and `steps` those of an epoch, so neither is set
  row.set("time_of", "step");
  row.set("statistic", "mean");
  row.set("clock", "host");
  row.set("spread_s", measure::standard_deviation(record.ranks.front().step_s));
  row.set("spread_is", "sd");
  if (time > 0) row.set("rate_per_s", static_cast<double>(record.global_batch) / time);
  row.set("rate_of", "all");
  const double compute = phase(Phase::forward) + phase(Phase::backward), data = phase(Phase::data_wait);
  const double exposed = phase(Phase::exposed_transfer) + phase(Phase::exposed_wait);
  row.set("compute_s", compute);
  row.set("data_wait_s", data);
  row.set("communication_s", exposed);
  row.set("communication_is", "exposed");
  row.set("other_s", std::max(0.0, time - compute - data - exposed));
  if (record.workers < 2) return;
  row.set("transfer_s", phase(Phase::exposed_transfer));
  row.set("late_peer_s", phase(Phase::exposed_wait));
  set_positive(row, "message_bytes", record.communication.gradient_bytes);
  set_text(row, "algorithm", safe(record.communication.algorithm));
}

void add_quality(Row& row, const Record& record) {
  if (record.epochs.empty()) return;
  const auto& last = record.epochs.back();
  row.set("epochs", static_cast<double>(last.epoch));
  row.set("updates", static_cast<double>(last.updates));
  if (!last.test_accuracy || *last.test_accuracy < 0 || *last.test_accuracy > 1) return;
  row.set("accuracy", fmt::format("{:.8f}", *last.test_accuracy));
  row.set("quality_of", "test");
  if (last.test_loss && *last.test_loss >= 0) row.set("loss", *last.test_loss);
}

}  // namespace

Row row_of(const Record& record) {
  Row row;
  add_configuration(row, record);
  add_times(row, record);
  add_quality(row, record);
  return row;
}

table::Table table_of_records(std::span<const Record> records) {
  table::Table table{.where = "records"};
  for (const auto& record : records)
    if (record.status == "complete" && record.kind != "comm" && record.kind != "evaluate")
      table.rows.push_back(row_of(record));
  return table;
}

}  // namespace paceline::check

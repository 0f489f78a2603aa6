#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "analysis/compare/consistency.h"
#include "base/error.h"
#include "check/check.h"
#include "check/rule.h"
#include "measure/ledger.h"
#include "measure/statistics.h"

namespace paceline::check {
namespace {

/// Whether some row knows the column of a rule, or has a "setting".
bool is_known(const Table& table, std::string_view column) {
  if (column == "setting")
    return std::ranges::any_of(table.rows, [](const Row& row) { return !row.settings.empty(); });
  const auto found = Column::find(column);
  base::expects(found.has_value(), "a rule names columns of the table");
  return std::ranges::any_of(table.rows, [&](const Row& row) { return row.knows(*found); });
}

/// Names what the rule needs and no row has, as "columns time_s or rate_per_s"; "" if it has all it needs.
std::string missing_columns(const Table& table, std::string_view needs) {
  std::string text;
  for (const auto need : table::split_words(needs)) {
    const auto alternatives = table::split_at(need, '|');
    if (std::ranges::any_of(alternatives, [&](const auto one) { return is_known(table, one); })) continue;
    if (!text.empty()) text += "; ";
    text += fmt::format("column{} {}", alternatives.size() > 1 ? "s" : "", fmt::join(alternatives, " or "));
  }
  return text;
}

/// Whether the rule holds claimed ratios against times.
bool is_of_claims(const Rule& rule) {
  return rule.name == "ratio.speedup" || rule.name == "ratio.efficiency" || rule.name == "compare.settings";
}

/// Those of the columns, separated by blanks, that no row knows: "time_of, train_samples".
std::string absent_columns(const Table& table, std::string_view columns) {
  auto absent = table::split_words(columns);
  std::erase_if(absent, [&](std::string_view column) { return is_known(table, column); });
  return fmt::format("{}", fmt::join(absent, ", "));
}

using measure::Phase;
using measure::Record;

template <typename T>
void set_positive(Row& row, Column column, T value) {
  if (value > 0) row.set(column, static_cast<double>(value));
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
  row.set("model", safe(record.model.name));
  row.set("device", safe(record.device_name.value_or(record.device)));
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
    if (name == "optimizer") row.set("optimizer", safe(text));
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
  row.set("algorithm", safe(record.communication.algorithm));
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

/// The rules for tables that also apply to records. The others need claims, or compare settings that records
/// keep apart anyway.
constexpr std::string_view kOfRecords[] = {"size.data", "size.product", "accuracy.loss-bound",
                                           "protocol.repeats", "protocol.drift"};

void add_own(const Record& record, Result& result) {
  if (record.status != "complete") return;
  for (const auto& finding : analysis::check(record))
    result.findings.push_back({.rule = finding.rule.empty() ? "record.ledger" : finding.rule,
                               .severity = finding.is_error ? Severity::error : Severity::warning,
                               .rows = {record.id},
                               .sentence = fmt::format("{}: {}.", record.id, finding.text)});
}

const Record* named_record(const Table& table, const Row& row, std::span<const Record> records) {
  const auto& name = row.text("baseline");
  if (name.empty() ||
      std::ranges::any_of(table.rows, [&](const Row& one) { return one.text("run") == name; }))
    return nullptr;
  const auto found = std::ranges::find(records, name, &Record::id);
  return found == records.end() ? nullptr : &*found;
}

}  // namespace

std::string_view name(Severity severity) {
  constexpr std::string_view kNames[] = {"note", "warning", "error"};
  return kNames[static_cast<std::size_t>(severity)];
}

std::size_t Result::number_of(Severity severity) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(findings, [&](const Finding& one) { return one.severity == severity; }));
}

/// The row that is wrong, or for several similar rows "a, b and 3 more".
std::string subject_of(const std::vector<std::string>& rows, bool is_of_all) {
  constexpr std::size_t kShown = 2;
  if (!is_of_all || rows.size() == 1) return rows.front();
  if (rows.size() <= kShown) return fmt::format("{} and {}", rows[0], rows[1]);
  return fmt::format("{}, {} and {} more", rows[0], rows[1], rows.size() - kShown);
}

void Findings::add(Severity severity, const About& about, std::string sentence) {
  Finding finding{.rule = std::string(rule_),
                  .severity = severity,
                  .cause = about.cause,
                  .printed = about.printed,
                  .corrected = about.corrected,
                  .where = study_.table().where};
  for (const auto i : about.rows) finding.rows.push_back(study_.row(i).name());
  if (!about.rows.empty()) finding.line = study_.row(about.rows.front()).line;
  finding.sentence = finding.rows.empty()
                         ? std::move(sentence)
                         : fmt::format("{}: {}", subject_of(finding.rows, about.is_of_all), sentence);
  all_.push_back(std::move(finding));
}

std::vector<Rule> catalogue() {
  std::vector<Rule> all;
  for (const auto part :
       {claim_rules(), ratio_rules(), scaling_rules(), time_rules(), size_rules(), comparison_rules(),
        bandwidth_rules(), link_rules(), model_rules(), accuracy_rules(), protocol_rules()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

Result check_table(const Table& table) {
  const Study study(table);
  const std::string no_ratio = why_no_ratio(study);
  Result result;
  std::size_t compared_ratios = 0;
  for (const auto& rule : catalogue()) {
    auto missing = missing_columns(table, rule.needs);
    const bool is_of_times =
        rule.name.starts_with("ratio.") && rule.needs.find("time_s") != std::string_view::npos;
    if (missing.empty() && is_of_times) missing = no_ratio;
    if (missing.empty()) {
      std::vector<Finding> found;
      Findings findings(rule.name, study, found);
      rule.run(study, findings);
      result.compared += findings.number_compared();
      if (is_of_claims(rule)) compared_ratios += findings.number_compared();
      const auto absent = absent_columns(table, rule.helps);
      if (!rule.pairs.empty() && findings.number_compared() == 0 && found.empty())
        missing = fmt::format("{}{}{}", rule.pairs, absent.empty() ? "" : "; perhaps ", absent);
      else if (!absent.empty() &&
               std::ranges::find(found, Severity::error, &Finding::severity) == found.end())
        missing = "in part, without " + absent;
      result.findings.insert(result.findings.end(), found.begin(), found.end());
    }
    if (!missing.empty()) result.not_checked.push_back({std::string(rule.name), std::move(missing)});
  }
  result.has_unchecked_claims = compared_ratios == 0 && std::ranges::any_of(table.rows, [](const Row& row) {
                                  return claimed_ratio(row).has_value();
                                });
  sort_findings(result);
  return result;
}

Result one_per_mistake(Result result) {
  std::map<std::tuple<std::string, Severity, std::string, std::string>, std::size_t> first;
  std::vector<Finding> kept;
  for (auto& finding : result.findings) {
    const auto [found, is_new] =
        first.try_emplace({finding.rule, finding.severity, finding.cause, finding.where}, kept.size());
    if (is_new)
      kept.push_back(std::move(finding));
    else if (auto& one = kept[found->second]; one.rows != finding.rows || one.printed != finding.printed)
      one.also.push_back(std::move(finding));
  }
  result.findings = std::move(kept);
  return result;
}

void sort_findings(Result& result) {
  std::ranges::stable_sort(result.findings, std::ranges::greater(), &Finding::severity);
}

Figure figure_of(double value, const Interval& interval) {
  return {value, std::min(interval.low, interval.high), std::max(interval.low, interval.high)};
}

std::string shown(double value) {
  const double size = std::abs(value);
  if (size >= 1e7 || (size > 0 && size < 1e-3)) return fmt::format("{:.3g}", value);
  if (size >= 1000 || value == std::round(value)) return fmt::format("{:.0f}", value);
  return size >= 100   ? fmt::format("{:.1f}", value)
         : size >= 0.1 ? fmt::format("{:.2f}", value)
                       : fmt::format("{:.3g}", value);
}

std::vector<bool> holm(const std::vector<double>& z) {
  constexpr double kLevel = 0.05;
  std::vector<std::size_t> order(z.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, std::ranges::greater(), [&](std::size_t i) { return z[i]; });
  std::vector<bool> holds(z.size(), false);
  for (std::size_t k = 0; k < order.size(); ++k) {
    const double p = 0.5 * std::erfc(z[order[k]] / std::sqrt(2.0));
    if (p > kLevel / static_cast<double>(order.size() - k)) break;
    holds[order[k]] = true;
  }
  return holds;
}

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

Table with_named_records(Table table, std::span<const Record> records) {
  for (std::size_t i = 0, all = table.rows.size(); i < all; ++i) {
    const auto* record = named_record(table, table.rows[i], records);
    if (record == nullptr) continue;
    auto row = row_of(*record);
    row.set("device", "");
    // The table's ratios use only the times and rates of a record's row, so its other figures are removed.
    for (const Column column :
         {Column("accuracy"), Column("loss"), Column("quality_of"), Column("test_samples")})
      row.set(column, "");
    table.rows.push_back(std::move(row));
  }
  return table;
}

const Row* row_over_record(const Table& table, std::span<const Record> records) {
  const auto found = std::ranges::find_if(
      table.rows, [&](const Row& row) { return named_record(table, row, records) != nullptr; });
  return found == table.rows.end() ? nullptr : &*found;
}

Result check_records(std::span<const Record> records) {
  Result result;
  for (const auto& record : records) add_own(record, result);
  const auto table = table_of_records(records);
  result.compared = records.size();  // each with its ledger
  if (table.rows.empty()) return result;
  const auto of_table = check_table(table);
  result.compared += of_table.compared;
  for (const auto& finding : of_table.findings) {
    const bool is_of_records = std::ranges::find(kOfRecords, finding.rule) != std::end(kOfRecords);
    const bool is_known = std::ranges::any_of(result.findings, [&](const Finding& one) {
      return one.rule == finding.rule && one.rows.front() == finding.rows.front();
    });
    if (is_of_records && !is_known) result.findings.push_back(finding);
  }
  sort_findings(result);
  return result;
}

}  // namespace paceline::check

#include <fmt/format.h>
#include <algorithm>

#include "analysis/compare/consistency.h"
#include "check/check.h"
#include "check/record_rows.h"
#include "check/rule.h"

namespace paceline::check {
namespace {

using measure::Record;

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
    if (const auto time = row.value("time_s"); time && *time > 0 && record->global_batch > 0) {
      row.set("rate_per_s", static_cast<double>(record->global_batch) / *time);
      row.set("rate_of", "all");
    }
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
  Table table{.where = "records"};
  for (const auto& record : records) {
    add_own(record, result);
    if (record.status == "complete" && record.kind != "comm" && record.kind != "evaluate")
      table.rows.push_back(row_of(record));
  }
  if (table.rows.empty()) return result;
  const auto of_table = check_table(table);
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

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "check/check.h"
#include "check/rule.h"
#include "table/words.h"

namespace paceline::check {
namespace {

bool is_known(const Table& table, std::string_view column) {
  if (column == "setting")
    return std::ranges::any_of(table.rows, [](const Row& row) { return !row.settings.empty(); });
  const auto found = Column::find(column);
  return found && std::ranges::any_of(table.rows, [&](const Row& row) { return row.knows(*found); });
}

/// Names what the rule needs and no row has, as "columns time_s or rate_per_s"; "" if it has all it needs.
std::string missing_columns(const Table& table, std::string_view needs) {
  std::string text;
  for (const auto need : table::split_words(needs)) {
    std::vector<std::string_view> alternatives;
    for (std::size_t at = 0; at <= need.size();) {
      const auto end = std::min(need.find('|', at), need.size());
      alternatives.push_back(need.substr(at, end - at));
      at = end + 1;
    }
    if (std::ranges::any_of(alternatives, [&](const auto one) { return is_known(table, one); })) continue;
    if (!text.empty()) text += "; ";
    text += fmt::format("column{} {}", alternatives.size() > 1 ? "s" : "", fmt::join(alternatives, " or "));
  }
  return text;
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
  for (const auto part : {ratio_rules(), scaling_rules(), time_rules(), size_rules(), comparison_rules(),
                          bandwidth_rules(), link_rules(), model_rules(), accuracy_rules(), protocol_rules()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

Result check_table(const Table& table) {
  const Study study(table);
  Result result;
  for (const auto& rule : catalogue()) {
    if (auto missing = missing_columns(table, rule.needs); !missing.empty()) {
      result.not_checked.push_back({std::string(rule.name), std::move(missing)});
      continue;
    }
    Findings findings(rule.name, study, result.findings);
    rule.run(study, findings);
  }
  sort_findings(result);
  return result;
}

void sort_findings(Result& result) {
  std::ranges::stable_sort(result.findings,
                           [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
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
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return z[a] > z[b]; });
  std::vector<bool> holds(z.size(), false);
  for (std::size_t k = 0; k < order.size(); ++k) {
    const double p = 0.5 * std::erfc(z[order[k]] / std::sqrt(2.0));
    if (p > kLevel / static_cast<double>(order.size() - k)) break;
    holds[order[k]] = true;
  }
  return holds;
}

}  // namespace paceline::check

#include "report/build.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "check/rule.h"
#include "measure/environment.h"

namespace paceline::report {
namespace {

using check::Finding;
using check::Result;
using check::Severity;
using Json = nlohmann::ordered_json;

std::string place_of(const Finding& finding) {
  if (finding.where.empty()) return "";
  return finding.line > 0 ? fmt::format(" ({}:{})", finding.where, finding.line)
                          : fmt::format(" ({})", finding.where);
}

std::string many(std::size_t number, const char* what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

/// Texts from files may hold any bytes; invalid UTF-8 is replaced.
std::string dumped(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
}

/// Formats with as many decimals as the printed figure if it has more than two; counts as integers.
std::string as_printed(double value, const std::string& printed) {
  constexpr std::size_t kUsual = 2, kMost = 6;
  constexpr double kLargestCount = 1e12;
  const auto point = printed.find('.');
  const bool is_plain = printed.find_first_not_of("0123456789.") == std::string::npos;
  const std::size_t decimals = point == std::string::npos || !is_plain ? 0 : printed.size() - point - 1;
  const bool is_count = value == std::round(value) && std::abs(value) < kLargestCount;
  if (is_count && (std::abs(value) > 1 || decimals <= kUsual)) return fmt::format("{:.0f}", value);
  if (decimals > kUsual && decimals <= kMost) return fmt::format("{:.{}f}", value, decimals);
  return check::shown(value);
}

}  // namespace

std::vector<std::string> check_lines(const Result& result) {
  std::vector<std::string> lines;
  for (const auto& finding : result.findings) {
    std::string interval;
    // A warning's figure does not replace the printed one; it is the figure that the words mention.
    const char* const what = finding.severity == Severity::error ? "Corrected" : "The figure";
    const auto digits = [&](double value) { return as_printed(value, finding.printed); };
    if (finding.corrected && finding.corrected->low < finding.corrected->high)
      interval = fmt::format(" {}: {} [{}, {}].", what, digits(finding.corrected->value),
                             digits(finding.corrected->low), digits(finding.corrected->high));
    else if (finding.corrected)
      interval = fmt::format(" {}: {}.", what, digits(finding.corrected->value));
    lines.push_back(fmt::format("{} {}{}: {}{}", check::name(finding.severity), finding.rule,
                                place_of(finding), finding.sentence, interval));
  }
  std::map<std::string, std::vector<std::string>> by_missing;
  for (const auto& one : result.not_checked) by_missing[one.missing].push_back(one.rule);
  if (!by_missing.empty())
    lines.push_back(
        "not checked, and the columns that would allow it (paceline check --template; docs/check.md):");
  for (const auto& [missing, rules] : by_missing)
    lines.push_back(fmt::format("  {}: {}", fmt::join(rules, ", "), missing));
  lines.push_back(fmt::format("{}, {}, {}; {} not checked", many(result.number_of(Severity::error), "error"),
                              many(result.number_of(Severity::warning), "warning"),
                              many(result.number_of(Severity::note), "note"),
                              many(result.not_checked.size(), "rule")));
  if (result.has_unchecked_claims)
    lines.push_back("no claimed speedup or efficiency was compared with times: this is no confirmation");
  return lines;
}

std::string check_json(const Result& result) {
  Json findings = Json::array(), not_checked = Json::array();
  for (const auto& one : result.findings) {
    Json corrected = nullptr;
    if (one.corrected)
      corrected = {
          {"value", one.corrected->value}, {"low", one.corrected->low}, {"high", one.corrected->high}};
    Json finding = {{"rule", one.rule}, {"severity", check::name(one.severity)}, {"rows", one.rows}};
    finding["printed"] = one.printed.empty() ? Json(nullptr) : Json(one.printed);
    finding["corrected"] = corrected;
    finding["sentence"] = one.sentence;
    finding["file"] = one.where;
    finding["line"] = one.line > 0 ? Json(one.line) : Json(nullptr);
    findings.push_back(std::move(finding));
  }
  for (const auto& one : result.not_checked)
    not_checked.push_back({{"rule", one.rule}, {"missing", one.missing}});
  Json all;
  all["findings"] = std::move(findings);
  all["not_checked"] = std::move(not_checked);
  return dumped(all);
}

std::string check_sarif(const Result& result) {
  std::map<std::string, std::string_view> what;
  for (const auto& rule : check::catalogue()) what[std::string(rule.name)] = rule.what;
  Json rules = Json::array(), results = Json::array();
  std::set<std::string> listed;
  for (const auto& one : result.findings) {
    if (listed.insert(one.rule).second) {
      const auto found = what.find(one.rule);
      rules.push_back(
          {{"id", one.rule},
           {"shortDescription", {{"text", found == what.end() ? one.rule : std::string(found->second)}}}});
    }
    Json location = {{"artifactLocation", {{"uri", one.where}}}};
    if (one.line > 0) location["region"] = {{"startLine", one.line}};
    Json entry = {
        {"ruleId", one.rule}, {"level", check::name(one.severity)}, {"message", {{"text", one.sentence}}}};
    if (!one.where.empty()) entry["locations"] = Json::array({{{"physicalLocation", location}}});
    results.push_back(std::move(entry));
  }
  Json driver = {{"name", "paceline"}, {"version", measure::version()}, {"rules", rules}};
  Json run = {{"tool", {{"driver", driver}}}, {"results", results}};
  Json all = {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
              {"version", "2.1.0"},
              {"runs", Json::array({run})}};
  return dumped(all);
}

}  // namespace paceline::report

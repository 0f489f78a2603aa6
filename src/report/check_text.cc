#include "report/build.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "check/rule.h"
#include "measure/environment.h"
#include "report/terminal_text.h"
#include "report/text.h"

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

/// " Corrected: 0.80 [0.75, 0.85]." An interval that the digits do not show is left out. A warning's figure
/// does not replace the printed one; it is the figure that the words mention.
std::string figure_text(const Finding& finding) {
  if (!finding.corrected) return "";
  const auto digits = [&](double value) { return as_printed(value, finding.printed); };
  const auto value = digits(finding.corrected->value), low = digits(finding.corrected->low),
             high = digits(finding.corrected->high);
  return fmt::format(" {}: {}{}.", finding.severity == Severity::error ? "Corrected" : "The figure", value,
                     low == high ? "" : fmt::format(" [{}, {}]", low, high));
}

/// " The same in 5 more: b2 (4.342 for 0.849), c2 and 3 more."
std::string also_text(const Finding& finding, bool shows_all) {
  constexpr std::size_t kShown = 4;
  if (finding.also.empty()) return "";
  const std::size_t shown = shows_all || finding.also.size() <= kShown + 1 ? finding.also.size() : kShown;
  std::string text;
  for (std::size_t k = 0; k < shown; ++k) {
    const auto& one = finding.also[k];
    text += fmt::format("{}{}", k > 0 ? ", " : "",
                        one.rows.empty() ? fmt::format("line {}", one.line) : one.rows.front());
    if (!one.printed.empty() && one.corrected)
      text += fmt::format(" ({}, {})", one.printed, as_printed(one.corrected->value, one.printed));
    else if (!one.printed.empty())
      text += fmt::format(" ({})", one.printed);
  }
  if (shown < finding.also.size()) text += fmt::format(" and {} more", finding.also.size() - shown);
  const bool has_figures = std::ranges::any_of(
      finding.also, [](const auto& one) { return !one.printed.empty() && one.corrected.has_value(); });
  return fmt::format(" The same in {}{}.", text,
                     !has_figures                          ? ""
                     : finding.severity == Severity::error ? " (printed, corrected)"
                                                           : " (printed, the figure)");
}

std::string finding_text(const Finding& finding, bool shows_all) {
  return fmt::format("{} {}{}: {}{}{}", check::name(finding.severity), finding.rule, place_of(finding),
                     finding.sentence, figure_text(finding), also_text(finding, shows_all));
}

/// The rules that find errors and lack one column, by that column: they are what a green table hides.
std::string nearly_checked(const Result& result) {
  std::map<std::string, std::vector<std::string>> by_column;
  for (const auto& one : result.not_checked) {
    constexpr std::string_view kColumn = "column ", kInPart = "in part, without ";
    const bool is_one = one.missing.starts_with(kColumn) && one.missing.find(';') == std::string::npos,
               is_in_part = one.missing.starts_with(kInPart);
    const auto rules = check::catalogue();
    const auto rule = std::ranges::find(rules, one.rule, &check::Rule::name);
    if (rule == rules.end() || (!is_one && !is_in_part)) continue;
    // Without the kind of the times no ratio can be made.
    if (rule->worst != Severity::error && !one.missing.starts_with("column time_of (")) continue;
    const auto column = one.missing.substr(is_one ? kColumn.size() : kInPart.size());
    by_column[column.substr(0, column.find(" ("))].push_back(one.rule + (is_in_part ? " in part" : ""));
  }
  std::string text;
  for (const auto& [column, rules] : by_column)
    text += fmt::format("{}{} ({})", text.empty() ? "" : "; ", column, fmt::join(rules, ", "));
  return text.empty() ? "" : "not checked for want of " + text;
}

void add_all_unchecked(const Result& result, std::vector<std::string>& lines) {
  std::map<std::string, std::vector<std::string>> by_missing;
  for (const auto& one : result.not_checked) by_missing[one.missing].push_back(one.rule);
  if (!by_missing.empty())
    lines.push_back(
        "not checked, and the columns that would allow it (paceline check --template; docs/check.md):");
  for (const auto& [missing, rules] : by_missing)
    lines.push_back(fmt::format("  {}: {}", fmt::join(rules, ", "), missing));
}

/// "3 rules": a rule may lack other columns in another table.
std::string rules_not_checked(const Result& result) {
  std::set<std::string> rules;
  for (const auto& one : result.not_checked) rules.insert(one.rule);
  return counted(std::ssize(rules), "rule");
}

/// What was compared, and what the findings come to. "0 errors" is only said where something was compared.
std::vector<std::string> totals(const Result& result) {
  const auto counts = [&](Severity severity, const char* what) {
    return counted(result.number_of(severity), what);
  };
  const std::string errors =
      result.compared == 0 && result.number_of(Severity::error) == 0
          ? "nothing was compared: no figure of this table could be held against another; "
          : counts(Severity::error, "error") + ", ";
  std::vector<std::string> lines{fmt::format("{}{}, {}; {} not checked", errors,
                                             counts(Severity::warning, "warning"),
                                             counts(Severity::note, "note"), rules_not_checked(result))};
  if (result.has_unchecked_claims)
    lines.push_back("no claimed speedup or efficiency was compared with times: this is no confirmation");
  return lines;
}

/// `text` in lines of at most `width` columns; the last of `most` ends in "..." where it is longer.
std::vector<std::string> in_lines(const std::string& text, std::size_t width, std::size_t most) {
  if (width == 0) return {text};
  auto lines = wrapped(text, width);
  const auto cut = [](std::string& line, std::size_t size) {
    if (line.size() <= size) return;
    line.resize(size);
    while (!line.empty() && (static_cast<unsigned char>(line.back()) & 0x80U) != 0) line.pop_back();
  };
  if (lines.size() > most) {
    lines.resize(most);
    cut(lines.back(), width - 4);
    lines.back() += " ...";
  }
  for (auto& line : lines) cut(line, width);
  return lines;
}

Json json_of(const std::optional<check::Figure>& figure) {
  if (!figure) return nullptr;
  return {{"value", figure->value}, {"low", figure->low}, {"high", figure->high}};
}

}  // namespace

std::vector<std::string> check_lines(const Result& result, const CheckText& options) {
  constexpr std::size_t kOfANote = 4, kEndless = 1000000;
  std::vector<std::string> lines, tail;
  const auto add = [&](std::vector<std::string>& to, const std::string& text, std::size_t most) {
    std::ranges::move(in_lines(text, options.width, most), std::back_inserter(to));
  };
  if (options.shows_all) {
    for (const auto& finding : result.findings) add(lines, finding_text(finding, true), kEndless);
    for (const auto& note : options.notes) add(lines, note, kEndless);
    std::vector<std::string> rest;
    add_all_unchecked(result, rest);
    std::ranges::move(totals(result), std::back_inserter(rest));
    for (const auto& line : rest) add(lines, line, kEndless);
    return lines;
  }
  for (std::size_t k = 0; k < std::min<std::size_t>(options.notes.size(), 2); ++k)
    add(tail, options.notes[k], kOfANote);
  if (const auto near = nearly_checked(result); !near.empty()) add(tail, near, kOfANote);
  if (!result.not_checked.empty())
    add(tail,
        fmt::format("{} need columns or rows that are not there: --why lists them",
                    rules_not_checked(result)),
        1);
  for (const auto& line : totals(result)) add(tail, line, kOfANote);
  // One line is kept for what is left out.
  const std::size_t room = options.most_lines - std::min(options.most_lines, tail.size() + 1);
  std::map<Severity, std::size_t> left_out;
  for (const auto& finding : result.findings) {
    const auto text = in_lines(finding_text(finding, false), options.width,
                               lines.empty() ? std::max<std::size_t>(1, room) : kEndless);
    if (!left_out.empty() || lines.size() + text.size() > room)
      ++left_out[finding.severity];
    else
      lines.insert(lines.end(), text.begin(), text.end());
  }
  if (!left_out.empty()) {
    std::string text;
    for (auto one = left_out.rbegin(); one != left_out.rend(); ++one)
      text += fmt::format("{}{}", text.empty() ? "" : ", ", counted(one->second, check::name(one->first)));
    add(lines, text + " more: --why shows them", 1);
  }
  lines.insert(lines.end(), tail.begin(), tail.end());
  return lines;
}

std::string check_json(const Result& result) {
  Json findings = Json::array(), not_checked = Json::array();
  for (const auto& one : result.findings) {
    Json finding = {{"rule", one.rule}, {"severity", check::name(one.severity)}, {"rows", one.rows}};
    finding["printed"] = one.printed.empty() ? Json(nullptr) : Json(one.printed);
    finding["corrected"] = json_of(one.corrected);
    finding["sentence"] = one.sentence;
    finding["file"] = one.where;
    finding["line"] = one.line > 0 ? Json(one.line) : Json(nullptr);
    finding["also"] = Json::array();
    for (const auto& same : one.also)
      finding["also"].push_back({{"rows", same.rows},
                                 {"printed", same.printed.empty() ? Json(nullptr) : Json(same.printed)},
                                 {"corrected", json_of(same.corrected)},
                                 {"line", same.line > 0 ? Json(same.line) : Json(nullptr)}});
    findings.push_back(std::move(finding));
  }
  for (const auto& one : result.not_checked)
    not_checked.push_back({{"rule", one.rule}, {"missing", one.missing}});
  return dumped({{"findings", std::move(findings)},
                 {"not_checked", std::move(not_checked)},
                 {"compared", result.compared}});
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
    const auto location_of = [&](std::size_t line) {
      Json location = {{"artifactLocation", {{"uri", one.where}}}};
      if (line > 0) location["region"] = {{"startLine", line}};
      return Json{{"physicalLocation", location}};
    };
    Json locations = Json::array({location_of(one.line)});
    for (const auto& same : one.also) locations.push_back(location_of(same.line));
    Json entry = {
        {"ruleId", one.rule}, {"level", check::name(one.severity)}, {"message", {{"text", one.sentence}}}};
    if (!one.where.empty()) entry["locations"] = std::move(locations);
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

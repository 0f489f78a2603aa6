#include "check/check.h"

#include "base/file.h"
#include "cli/commands/commands.h"
#include "cli/evidence.h"
#include "cli/screen/screen.h"
#include "report/check_text.h"

namespace paceline::cli {
namespace {

using check::Result;
using check::Severity;

/// The exit code if something is wrong in the table; 2 and more are other errors.
constexpr int kDoesNotHold = 1;

void append(Result& all, Result one) {
  all.findings.insert(all.findings.end(), one.findings.begin(), one.findings.end());
  for (auto& rule : one.not_checked) {
    const bool is_known = std::ranges::any_of(all.not_checked, [&](const auto& known) {
      return known.rule == rule.rule && known.missing == rule.missing;
    });
    if (!is_known) all.not_checked.push_back(std::move(rule));
  }
}

}  // namespace

int check_command(const Settings& settings) {
  Screen screen(false);
  const auto& options = settings.check;
  if (!options.template_name.empty()) {
    std::fputs(table::template_text(options.template_name).c_str(), stdout);
    return 0;
  }
  for (const auto& [file, option] : {std::pair{options.json, "--json"}, std::pair{options.sarif, "--sarif"}})
    if (!file.empty()) base::require_directory_of(file, option);
  const auto evidence = read_evidence(settings.report.records, settings.report.is_same_machine);
  Result result;
  for (const auto& table : evidence.tables) append(result, check::check_table(table));
  if (!evidence.records.records.empty()) append(result, check::check_records(evidence.records.records));
  check::sort_findings(result);
  for (const auto& remark : evidence.records.remarks) screen.explain(remark);
  for (const auto& table : evidence.tables)
    for (const auto& note : table.notes) screen.explain(table.where + ": " + note);
  for (const auto& line : report::check_lines(result)) screen.explain(line);
  if (!options.json.empty()) base::write_file(options.json, report::check_json(result));
  if (!options.sarif.empty()) base::write_file(options.sarif, report::check_sarif(result));
  const bool fails =
      result.number_of(Severity::error) > 0 || (options.strict && result.number_of(Severity::warning) > 0);
  return fails ? kDoesNotHold : 0;
}

}  // namespace paceline::cli

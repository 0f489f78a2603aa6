#include "measure/output_file.h"
#include "report/build.h"
#include "table/table.h"

#include <fmt/format.h>

#include "base/file.h"
#include "check/record_rows.h"
#include "cli/commands/commands.h"
#include "cli/evidence.h"
#include "cli/reports.h"
#include "cli/screen/screen.h"

namespace paceline::cli {

int report_command(const Settings& settings) {
  Screen screen(false);
  const auto evidence = read_evidence(settings.report.records, settings.report.is_same_machine);
  const auto& [records, remarks] = evidence.records;
  const report::BuildOptions options{.title = "", .command = settings.typed, .remarks = remarks};
  const auto document = evidence.tables.empty()
                            ? report::build(records, options)
                            : report::build_with_tables(records, evidence.tables, options);
  measure::require_output(settings.report.records_csv, "--records-csv");  // before anything is written
  auto written = write_reports(document, settings.report);
  if (const auto& file = settings.report.records_csv; !file.empty()) {
    const auto rows = check::table_of_records(records);
    base::write_file(file, table::to_plain_csv(rows));
    written.push_back(fmt::format("records:  {} ({} row{})", file.string(), rows.rows.size(),
                                  rows.rows.size() == 1 ? "" : "s"));
  }
  if (written.empty()) screen.say(report::to_terminal(document, screen.width(), screen.colour()));
  if (evidence.tables.empty() || !records.empty())
    screen.say(fmt::format("{} record{} read", records.size(), records.size() == 1 ? "" : "s"));
  if (!evidence.tables.empty())
    screen.say(
        fmt::format("{} table{} read", evidence.tables.size(), evidence.tables.size() == 1 ? "" : "s"));
  if (!written.empty())  // otherwise they are at the top of what is shown
    for (const auto& remark : remarks) screen.say(remark);
  for (const auto& line : written) screen.say(line);
  if (written.empty()) screen.say("shown here only; --html, --markdown, --csv and --json write it to files");
  return 0;
}

}  // namespace paceline::cli

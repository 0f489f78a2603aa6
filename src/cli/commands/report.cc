#include "report/build.h"

#include <fmt/format.h>

#include "cli/commands/commands.h"
#include "cli/reports.h"
#include "cli/screen.h"

namespace paceline::cli {

int report_command(const Settings& settings) {
  Screen screen(false);
  const auto [records, remarks] = read_records(settings.report.records);
  const auto document = report::build(records, {.title = "", .command = settings.typed, .remarks = remarks});
  const auto written = write_reports(document, settings.report);
  if (written.empty()) screen.say(report::to_terminal(document, screen.width(), screen.colour()));
  screen.say(fmt::format("{} record{} read", records.size(), records.size() == 1 ? "" : "s"));
  if (!written.empty())  // else they stand on top of what is shown
    for (const auto& remark : remarks) screen.say(remark);
  for (const auto& line : written) screen.say(line);
  if (written.empty()) screen.say("shown here only; --html, --markdown, --csv and --json write it to files");
  return 0;
}

}  // namespace paceline::cli

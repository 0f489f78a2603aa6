#include "report/explain.h"

#include "cli/commands/commands.h"
#include "cli/reports.h"
#include "cli/screen/screen.h"

namespace paceline::cli {

int explain_command(const Settings& settings) {
  Screen screen(false);
  const auto [records, remarks] = read_records(settings.report.records);
  auto document = report::explain(records);
  document.warnings = remarks;
  screen.say(report::to_terminal(document, screen.width(), screen.colour()));
  return 0;
}

}  // namespace paceline::cli

#include "table/import/import.h"

#include <fmt/format.h>

#include "base/file.h"
#include "cli/commands/commands.h"
#include "cli/screen/screen.h"

namespace paceline::cli {

int import_command(const Settings& settings) {
  const auto& options = settings.import;
  if (!options.out.empty()) base::require_directory_of(options.out, "--out");
  const auto tables = table::import_files(settings.report.records, options.set);
  std::string text;
  for (const auto& one : tables) {
    if (tables.size() > 1 && !text.empty())
      base::fail(
          base::ErrorKind::usage,
          "the files are of {} runs or programs, but one table holds one; import them one after the other",
          tables.size());
    text += table::to_csv(one);
  }
  if (options.out.empty()) {
    std::fputs(text.c_str(), stdout);
    return 0;
  }
  base::write_file(options.out, text);
  Screen screen(false);
  for (const auto& note : tables.front().notes) screen.explain(note);
  screen.say(fmt::format("{}: {} row{}", options.out.string(), tables.front().rows.size(),
                         tables.front().rows.size() == 1 ? "" : "s"));
  return 0;
}

}  // namespace paceline::cli

#include "study/search.h"

#include <fmt/format.h>

#include "cli/commands/assign_processes.h"
#include "cli/commands/cells.h"
#include "cli/commands/commands.h"
#include "train/run.h"

namespace paceline::cli {
namespace {

constexpr double kValidationSplit = 0.1;  ///< if the data has no validation part and no size was given

}  // namespace

int search_command(const Settings& given) {
  Settings settings = for_processes(given);
  const auto backend = backend_alone(settings);
  study::Search search{.configurations = settings.configurations, .how = settings.study.search};
  for (auto& one : search.configurations) one.options.workers = settings.train.workers;
  const auto data = train::inspect(search.configurations.front().options, backend).data;
  if (!data.validation_samples) {
    for (auto& one : search.configurations) one.options.validation_split = kValidationSplit;
    settings.notes.push_back(fmt::format(
        "the data has no validation part to choose on: a tenth of every training class is held back, as with "
        "--validation-split {:g}",
        kValidationSplit));
  }
  const auto cells = study::search_cells(search);
  if (search.how.halving && cells.front().stage.empty())
    settings.notes.push_back(
        "--halving changes nothing: there is nothing to drop between the first epoch and the last; it needs two "
        "configurations and --epochs 2 at least");
  return run_cells(settings, backend, cells,
                   [&](const std::vector<study::PlannedCell>& cells, const study::Runner& runner) {
                     return study::run_search(search, cells, runner);
                   });
}

}  // namespace paceline::cli

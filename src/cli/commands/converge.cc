#include "cli/commands/assign_processes.h"
#include "cli/commands/cells.h"
#include "cli/commands/commands.h"

namespace paceline::cli {

int converge_command(const Settings& given) {
  const Settings settings = for_processes(given);
  return run_cells(settings, backend_alone(settings),
                   study::converge_cells(settings.train, settings.study.converge));
}

}  // namespace paceline::cli

#include "cli/backend.h"
#include "cli/commands/assign_processes.h"
#include "cli/commands/cells.h"
#include "cli/commands/commands.h"

namespace paceline::cli {

int converge_command(const Settings& given) {
  const Settings settings = for_processes(given);
  return run_cells(settings, make_backend(settings.train.device),
                   study::converge_cells(settings.train, settings.study.converge));
}

}  // namespace paceline::cli

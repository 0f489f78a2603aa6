#include "cli/commands/assign_processes.h"
#include "cli/commands/cells.h"
#include "cli/commands/commands.h"
#include "cluster/make_backend.h"

namespace paceline::cli {

int scale_command(const Settings& given) {
  const Settings settings = for_processes(given);
  return run_cells(settings, backend_alone(settings, cluster::emulation_of(settings.train)),
                   study::scale_cells(settings.train, settings.study.scale));
}

}  // namespace paceline::cli

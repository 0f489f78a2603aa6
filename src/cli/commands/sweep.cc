#include "cli/commands/cells.h"
#include "cli/commands/commands.h"

namespace paceline::cli {

int sweep_command(const Settings& settings) {
  const auto backend = backend_alone(settings);
  return run_cells(settings, backend, study::sweep_cells(settings.train, settings.study.sweep, backend));
}

}  // namespace paceline::cli

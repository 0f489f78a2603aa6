#include "cli/backend.h"
#include "cli/commands/cells.h"
#include "cli/commands/commands.h"

namespace paceline::cli {

int sweep_command(const Settings& settings) {
  const auto backend = make_backend(settings.train.device);
  return run_cells(settings, backend, study::sweep_cells(settings.train, settings.study.sweep, backend));
}

}  // namespace paceline::cli

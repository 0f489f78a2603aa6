#include "study/settle.h"

#include "cli/commands/assign_processes.h"
#include "cli/commands/cells.h"
#include "cli/commands/commands.h"

namespace paceline::cli {

int study_command(const Settings& given) {
  Settings settings = for_processes(given);
  auto& axes = settings.study;
  if (axes.quick) study::apply_quick(settings.train, axes, settings.given);
  settings.train.workers = workers_for_convergence(axes.scale.workers, axes.scale.cores_each);
  const auto backend = backend_alone(settings);
  return run_cells(settings, backend, study::study_cells(settings.train, axes, backend), study::run_settled);
}

}  // namespace paceline::cli

#include "study/study.h"

#include <algorithm>

#include "base/topology.h"
#include "cli/backend.h"
#include "cli/commands/cells.h"
#include "cli/commands/commands.h"

namespace paceline::cli {
namespace {

/// Convergence is about accuracy: as many workers as have cores of their own, so that it is not slow for
/// nothing.
int workers_for_convergence(const std::vector<int>& compared, int cores) {
  int most = 1;
  for (const int workers : compared)
    if (workers <= cores) most = std::max(most, workers);
  return most;
}

}  // namespace

int study_command(const Settings& given) {
  Settings settings = given;
  if (settings.study.quick) study::apply_quick(settings.train, settings.study, settings.given);
  settings.train.workers = workers_for_convergence(settings.study.scale.workers, base::usable_cores());
  const auto backend = make_backend(settings.train.device);
  return run_cells(settings, backend, study::study_cells(settings.train, settings.study, backend));
}

}  // namespace paceline::cli

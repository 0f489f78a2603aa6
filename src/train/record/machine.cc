#include "train/record/machine.h"

#include <utility>

#include "measure/environment.h"

namespace paceline::train {

measure::Environment machine_of(const ProcessPlacement& place, std::vector<std::string> libraries) {
  auto machine = measure::environment(std::move(libraries));
  if (place.host_cores > 0) machine.cores = place.host_cores;
  return machine;
}

}  // namespace paceline::train

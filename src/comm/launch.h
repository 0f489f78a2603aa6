#pragma once

/// What the launcher (mpirun, srun, another) told this process about the others that it started.

#include <functional>
#include <string>

namespace paceline::comm {

struct Launch {
  std::string by;  ///< "mpirun (OMPI_COMM_WORLD_SIZE)"; empty: started alone, no launcher
  int process = 0;
  int processes = 1;  ///< 0: the launcher says that there are others, not how many
  [[nodiscard]] bool alone() const { return processes == 1; }
};

/// Looks a variable up; nullptr when it is not set. ::getenv outside of tests.
using Environment = std::function<const char*(const char*)>;

/// Reads OMPI_COMM_WORLD_*, then SLURM_* (only inside a job step: in the batch script itself SLURM_NTASKS
/// speaks of tasks that nobody has started), then PMIX_RANK, then RANK and WORLD_SIZE. Pure function.
///
/// Errors   Error(usage) when a variable is no number, or RANK is not below WORLD_SIZE
[[nodiscard]] Launch read_launch(const Environment& environment);

}  // namespace paceline::comm

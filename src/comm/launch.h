#pragma once

/// What the launcher (mpirun, srun, another) told this process about the others that it started.

#include <cstdint>
#include <functional>
#include <string>

namespace paceline::comm {

struct Launch {
  std::string by;  ///< "mpirun (OMPI_COMM_WORLD_SIZE)"; empty: started alone, no launcher
  int process = 0;
  int processes = 1;  ///< 0: the launcher says that there are others, not how many
  std::string job;    ///< what tells this run of a launcher from others on the host; empty: it does not say
  int local = -1;     ///< this process's number among those of its host; -1: it does not say
  int locals = 0;     ///< how many those are; 0: it does not say
  /// MASTER_ADDR and MASTER_PORT: where processes meet that only the environment told about one another.
  /// Empty: the launcher's MPI joins them.
  std::string meeting_host;
  std::uint16_t meeting_port = 0;
  [[nodiscard]] bool alone() const { return processes == 1; }
};

/// Looks a variable up; nullptr when it is not set. ::getenv outside of tests.
using EnvironmentLookup = std::function<const char*(const char*)>;

/// Reads OMPI_COMM_WORLD_*, then SLURM_* (only inside a job step: in the batch script itself SLURM_NTASKS
/// speaks of tasks that nobody has started), then PMIX_RANK, then RANK and WORLD_SIZE, which need MASTER_ADDR
/// and MASTER_PORT. Pure function.
///
/// Errors   Error(usage) when a variable is no number, one is missing, or RANK is not below WORLD_SIZE;
///          Error(comm) when another MPI's launcher (PMI_SIZE) started several
[[nodiscard]] Launch read_launch(const EnvironmentLookup& environment);

}  // namespace paceline::comm

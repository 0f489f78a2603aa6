#pragma once

/// What the launcher (mpirun, srun, another) told this process about the others that it started.

#include <chrono>
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
  /// Where processes meet that only the environment told about one another: MASTER_ADDR, or the first host of
  /// Slurm's step. Empty: the launcher's MPI joins them.
  std::string meeting_host;
  std::uint16_t meeting_port = 0;
  /// Process 0 listens at the first free one of so many ports from meeting_port on, and the others look for
  /// it at each. More than one needs a `job`, by which the processes of a run know one another.
  int meeting_ports = 1;
  std::chrono::seconds meet_within{60};  ///< for all processes to come
  bool is_mpich = false;                 ///< its MPI is of MPICH's family (MPICH, Intel, Cray), not Open MPI
  std::string interface;    ///< of the network, over which processes talk; empty: as the system routes
  std::string own_address;  ///< of this process on it; empty: the one with which process 0 is reached
  [[nodiscard]] bool alone() const { return processes == 1; }
};

/// Looks a variable up; nullptr when it is not set. ::getenv outside of tests.
using EnvironmentLookup = std::function<const char*(const char*)>;

/// Reads the variables of, in this order: `paceline launch` (PACELINE_JOB), torchrun (TORCHELASTIC_RUN_ID),
/// mpirun (OMPI_COMM_WORLD_*), srun (SLURM_*, only inside a job step: in the batch script itself SLURM_NTASKS
/// speaks of tasks that nobody has started), another PMIx launcher, whoever sets RANK and WORLD_SIZE, and
/// an mpiexec of MPICH's family (PMI_*). A torchrun or an mpirun that srun has started comes first: its
/// processes are more. Pure function.
///
/// Processes of srun meet by TCP unless PMIX_* is set: at the first host of the step, at one of eight ports
/// that follow from job and step; MASTER_ADDR and MASTER_PORT replace them. Those of torchrun meet at
/// MASTER_PORT + 1 to + 8, since torchrun itself listens at MASTER_PORT. Those of an mpiexec of MPICH's
/// family are joined by its MPI, and meet by TCP where MASTER_ADDR is set.
///
/// Errors   Error(usage) when a variable is no number, one is missing, RANK is not below WORLD_SIZE, or it
///          cannot be told which host of a Slurm step has process 0
[[nodiscard]] Launch read_launch(const EnvironmentLookup& environment);

/// The first host of Slurm's "node[003-004,9],login": node003. Pure function.
[[nodiscard]] std::string first_host(const std::string& list);

/// The variable that marks processes of `paceline launch --by here`, and tells runs apart.
inline constexpr const char* kJobOfLaunch = "PACELINE_JOB";

}  // namespace paceline::comm

#pragma once

/// Reads what the launcher (mpirun, srun, another) tells this process about the processes of the run.

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace paceline::comm {

struct Launch {
  std::string by;  ///< "mpirun (OMPI_COMM_WORLD_SIZE)"; empty: no launcher
  int process = 0;
  int processes = 1;  ///< 0: there are others, but the launcher does not say how many
  std::string job;    ///< identifies this run among others on the host; empty: unknown
  int local = -1;     ///< this process's number among those of its host; -1: unknown
  int locals = 0;     ///< the number of processes of this host; 0: unknown
  /// Where the processes meet if no MPI joins them: MASTER_ADDR, or the first host of Slurm's step. Empty:
  /// the launcher's MPI joins them.
  std::string meeting_host;
  std::uint16_t meeting_port = 0;
  std::string listen_at;  ///< loopback_of(meeting_host): the only address on which process 0 listens there
  /// Process 0 listens at the first free one of this many ports from meeting_port on, and the others try all
  /// of them. More than one port requires a `job`, by which the processes recognise one another.
  int meeting_ports = 1;
  [[nodiscard]] std::uint16_t meeting_port_at(int number) const {
    return static_cast<std::uint16_t>(meeting_port + number);
  }
  std::chrono::seconds meet_within{60};  ///< how long to wait for all processes
  bool is_mpich = false;                 ///< its MPI is of MPICH's family (MPICH, Intel, Cray), not Open MPI
  /// The launcher (an mpiexec of MPICH's family) kills all other processes as soon as it sees that one has
  /// ended before the end of the run.
  bool kills_at_a_loss = false;
  /// What only the processes of this run know (PACELINE_SECRET), so that strangers who reach the meeting
  /// place cannot take part. Empty: none was given. It must not be printed or recorded.
  std::string secret;
  std::string interface;    ///< network interface between processes; empty: the system chooses
  std::string own_address;  ///< this process's address on it; empty: that of the route to process 0
  [[nodiscard]] bool alone() const { return processes == 1; }
  /// Whether all processes are known to be on this host, so that no other host need reach them.
  [[nodiscard]] bool is_on_this_host() const;
};

/// Returns a variable's value, or nullptr if it is not set: ::getenv, except in tests.
using EnvironmentLookup = std::function<const char*(const char*)>;

/// Reads the variables of these launchers, in this order: `paceline launch` (PACELINE_JOB), torchrun
/// (TORCHELASTIC_RUN_ID), mpirun (OMPI_COMM_WORLD_*), srun (SLURM_*, only inside a job step, since in the
/// batch script SLURM_NTASKS counts tasks that nobody has started), another PMIx launcher, anything that sets
/// RANK and WORLD_SIZE, and an mpiexec of MPICH's family (PMI_*). torchrun and mpirun come before srun, since
/// srun may have started them. A pure function.
///
/// Processes of srun meet by TCP unless PMIX_* is set: at the first host of the step, at one of eight ports
/// derived from job and step; MASTER_ADDR and MASTER_PORT override them. Those of torchrun meet at
/// MASTER_PORT + 1 to + 8, since torchrun itself listens at MASTER_PORT. Those of an mpiexec of MPICH's
/// family are joined by its MPI, or meet by TCP if MASTER_ADDR is set.
///
/// Errors   Error(usage): a variable is no number or missing, RANK is not below WORLD_SIZE, or the host of a
///          Slurm step's process 0 cannot be determined
[[nodiscard]] Launch read_launch(const EnvironmentLookup& environment);

/// The address of this host alone that `host` means ("127.0.0.2", "localhost", "::1"); "": it is a name or an
/// address that others can reach.
[[nodiscard]] std::string loopback_of(const std::string& host);

/// What of a launcher's variables is set and what is missing, such as RANK without WORLD_SIZE: each process
/// would train alone, as if it were the only one. Empty if there are none, or read_launch() finds a whole
/// launcher. A pure function.
[[nodiscard]] std::string half_of_launcher(const EnvironmentLookup& environment);

/// Errors   Error(usage): half_of_launcher() finds some; it says what to do
void require_whole_launcher(const EnvironmentLookup& environment);

/// The first host of Slurm's "node[003-004,9],login": node003. A pure function.
[[nodiscard]] std::string first_host(const std::string& list);

/// The variable that marks processes of `paceline launch --by here` and identifies the run.
inline constexpr const char* kJobOfLaunch = "PACELINE_JOB";
/// The variable with the secret of Launch::secret, which has at least this many characters.
inline constexpr const char* kSecret = "PACELINE_SECRET";
inline constexpr std::size_t kShortestSecret = 16;

}  // namespace paceline::comm

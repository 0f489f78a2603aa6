#pragma once

/// Makes the command lines that `paceline launch` runs: for mpirun, srun and itself. Pure functions.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/launch.h"

namespace paceline::cluster {

// `paceline launch --by here`: starts and watches the processes of one host without mpirun.
//
// launch starts itself a second time, and that process starts the others, as mpirun would. So everything
// that launch does for a launcher (signals, restarts, orphans) applies to it too.

/// Whether launch has started this process to start the others: the value of kJobOfLaunch begins with the id
/// of its parent.
[[nodiscard]] bool is_starter_here();

/// Runs `line` in `processes` processes of this host, which meet through RANK, WORLD_SIZE, LOCAL_RANK,
/// MASTER_ADDR, MASTER_PORT and PACELINE_JOB; the first one gets standard input. Waits until all have ended.
/// When one ends by a signal or with an error code, the others get ten seconds to report it and to write the
/// record; then SIGTERM, and five seconds later they are killed. If it was asked to stop (129, 130, 143),
/// launch's own --grace applies.
///
/// Returns the code of the first process that ended with an error (128 + the signal if a signal ended it),
/// else of the first that was stopped, else 0.
///
/// Errors   Error(comm): a process cannot be started, or there is no free port
/// Threads  one, in a process that has no other
[[nodiscard]] int run_here(const std::vector<std::string>& line, int processes);

/// What starts the processes of `paceline launch`.
enum class LaunchBy {
  automatic,
  mpirun,  ///< Open MPI's
  srun,    ///< inside a Slurm allocation
  here,    ///< launch itself, on this host
};

struct LaunchOptions {
  LaunchBy by = LaunchBy::automatic;
  int processes = 0;           ///< 0: as many as --hosts has slots, or the allocation has tasks
  std::string interface;       ///< network interface between processes; empty: the system chooses
  std::string hosts;           ///< "a:2,b:2"; empty: this machine, or the allocation's hosts
  bool oversubscribe = false;  ///< more processes than cores
  bool as_root = false;        ///< mpirun refuses to run as root unless told to
  int restarts = 0;            ///< how often a lost run is restarted from its last checkpoint
  int grace_s = 60;            ///< from a signal that asks to stop until processes are killed
  bool print = false;          ///< only print the line; nothing is started
  std::string lost;            ///< for a restart: how the previous run was lost, see lost_text()
  std::string ear;             ///< address at which launch listens, see log.h; empty: none
  bool is_plain = false;       ///< nobody reads the output at a terminal: the processes get NO_COLOR
  bool has_pmix = true;        ///< srun: processes are joined by MPI, through PMIx; else by TCP
  int cores_per_task = 0;      ///< srun: of the allocation, which a step does not inherit; 0: not requested
};

/// What is available to a launch.
struct Surroundings {
  bool has_mpirun = false;     ///< on PATH, and this program was built with MPI
  bool in_allocation = false;  ///< of Slurm, but not in a step of it; srun is on PATH
};

/// What starts the processes if `options` do not say: mpirun for other hosts, else srun inside an allocation,
/// else mpirun if available, else launch itself. A pure function.
///
/// Errors   Error(usage): --by and --hosts contradict each other
[[nodiscard]] LaunchBy choose_starter(const LaunchOptions& options, const Surroundings& around);

/// Whether processes may be on hosts other than this one, whose name is `own`: those of --hosts, or those
/// that a scheduler or a file of hosts gives to mpirun and srun. Hosts that cannot be known count as others.
[[nodiscard]] bool may_use_other_hosts(const LaunchOptions& options,
                                       const comm::EnvironmentLookup& environment, std::string_view own);

/// The number of processes; and of hosts, as far as --hosts says it.
///
/// Errors   Error(usage) as below
[[nodiscard]] int processes_of(const LaunchOptions& options);
[[nodiscard]] int nodes_of(const LaunchOptions& options);

/// The line of `options.by` that runs `program` with `words` ("train", "--model", ...): of mpirun, if that is
/// automatic; of launch itself, to start the processes on this host (run_here).
///
/// Errors   Error(usage): no number of processes; hosts that are no list of NAME or NAME:SLOTS, or have fewer
///          slots than there are processes
[[nodiscard]] std::vector<std::string> launch_line(const LaunchOptions& options, const std::string& program,
                                                   const std::vector<std::string>& words);
/// What the line of launch itself does, as shell commands, for display.
[[nodiscard]] std::string here_in_shell(const LaunchOptions& options, const std::string& program,
                                        const std::vector<std::string>& words);

/// A line that ends with 0 within half a minute if processes can be started on `host`.
[[nodiscard]] std::vector<std::string> reach_line(const LaunchOptions& options, const std::string& host);

/// `options` with only those hosts that answer, in their order; with fewer slots, fewer processes.
///
/// Errors   Error(comm): no host answers
[[nodiscard]] LaunchOptions on_hosts_left(LaunchOptions options,
                                          const std::function<bool(const std::string& host)>& answers);

/// `words` quoted for a shell.
[[nodiscard]] std::string shell_line(const std::vector<std::string>& words);

}  // namespace paceline::cluster

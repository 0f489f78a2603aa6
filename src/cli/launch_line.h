#pragma once

/// The lines of `paceline launch`: mpirun's, srun's and its own. Pure functions.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::cli {

/// What starts the processes of `paceline launch`.
enum class LaunchBy {
  automatic,
  mpirun,  ///< Open MPI's
  srun,    ///< inside a Slurm allocation
  here,    ///< launch itself, on this host
};

struct LaunchOptions {
  LaunchBy by = LaunchBy::automatic;
  int processes = 0;           ///< 0: as many as --hosts has places, or the allocation has tasks
  std::string interface;       ///< of the network, over which the processes talk; empty: as the system routes
  std::string hosts;           ///< "a:2,b:2"; empty: this machine, or the allocation's hosts
  bool oversubscribe = false;  ///< more processes than cores
  bool as_root = false;        ///< mpirun refuses to run as root without being told
  int restarts = 0;            ///< times that a lost run is started again from its last checkpoint
  int grace_s = 60;            ///< from a signal that asks to stop to an end by force
  bool print = false;          ///< the line alone; nothing is started
  std::string lost;            ///< of a restart: how the run before was lost, see lost_text()
  std::string ear;             ///< where launch listens, see log.h; empty: it does not
  bool has_pmix = true;        ///< srun: processes are joined by MPI, through PMIx; else by TCP
  int cores_per_task = 0;      ///< srun: of the allocation, which a step does not inherit; 0: not asked for
};

/// What a launch finds around itself.
struct Surroundings {
  bool has_mpirun = false;     ///< on PATH, and this program was built with MPI
  bool in_allocation = false;  ///< of Slurm, and not in a step of it; srun is on PATH
};

/// Who starts the processes where `options` leave it open: mpirun for other hosts, else srun inside an
/// allocation, else mpirun where it is there, else launch itself. Errors   Error(usage): --by and --hosts
/// contradict each other. Pure function.
[[nodiscard]] LaunchBy choose_starter(const LaunchOptions& options, const Surroundings& around);

/// How many processes, and on how many hosts as far as --hosts says it. Errors   Error(usage) as below
[[nodiscard]] int processes_of(const LaunchOptions& options);
[[nodiscard]] int nodes_of(const LaunchOptions& options);

/// The words of the mpirun line that runs `program` with `words` ("train", "--model", ...).
///
/// Errors   Error(usage): no number of processes; hosts that are no list of NAME or NAME:PLACES, or have
///          fewer places than there are processes
[[nodiscard]] std::vector<std::string> mpirun_line(const LaunchOptions& options, const std::string& program,
                                                   const std::vector<std::string>& words);

/// The words of the srun line. Errors   Error(usage): no number of processes
[[nodiscard]] std::vector<std::string> srun_line(const LaunchOptions& options, const std::string& program,
                                                 const std::vector<std::string>& words);

/// The words of the line with which launch starts the process that starts the others on this host: itself, in
/// its second part (here.h). Errors   Error(usage): no number of processes
[[nodiscard]] std::vector<std::string> here_line(const LaunchOptions& options, const std::string& program,
                                                 const std::vector<std::string>& words);
/// What does the same in a shell, for people.
[[nodiscard]] std::string here_in_shell(const LaunchOptions& options, const std::string& program,
                                        const std::vector<std::string>& words);

/// The words of a line that ends with 0 when processes can be started on `host`, within half a minute.
[[nodiscard]] std::vector<std::string> reach_line(const LaunchOptions& options, const std::string& host);

/// `options` on those of its hosts that answer, in their order; with fewer places, fewer processes.
///
/// Errors   Error(comm): none answers
[[nodiscard]] LaunchOptions on_hosts_left(LaunchOptions options,
                                          const std::function<bool(const std::string& host)>& answers);

/// `words` as a shell takes them.
[[nodiscard]] std::string shell_line(const std::vector<std::string>& words);

}  // namespace paceline::cli

#pragma once

/// What is typed for a person: the mpirun line of `paceline launch`, the job script of `paceline sbatch`.
/// Pure functions.

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::cli {

struct LaunchOptions {
  int processes = 0;           ///< 0: as many as --hosts has places, or the allocation has tasks
  std::string hosts;           ///< "a:2,b:2"; empty: this machine, or the allocation's hosts
  bool oversubscribe = false;  ///< more processes than cores
  bool as_root = false;        ///< mpirun refuses to run as root without being told
  int restarts = 0;            ///< times that a lost run is started again from its last checkpoint
  int grace_s = 60;            ///< from a signal that asks to stop to an end by force
  bool print = false;          ///< the line alone; nothing is started
  std::string lost;            ///< of a restart: how the run before was lost, see lost_text()
  std::string ear;             ///< where launch listens, see say.h; empty: it does not
};

/// The words of the mpirun line that runs `program` with `words` ("train", "--model", ...).
///
/// Errors   Error(usage): no number of processes; hosts that are no list of NAME or NAME:PLACES, or have
///          fewer places than there are processes
[[nodiscard]] std::vector<std::string> mpirun_line(const LaunchOptions& options, const std::string& program,
                                                   const std::vector<std::string>& words);

/// The words of a line that ends with 0 when processes can be started on `host`, within half a minute.
[[nodiscard]] std::vector<std::string> reach_line(const LaunchOptions& options, const std::string& host);

/// `options` on those of its hosts that answer, in their order; with fewer places, fewer processes.
///
/// Errors   Error(comm): none answers
[[nodiscard]] LaunchOptions on_hosts_left(LaunchOptions options,
                                          const std::function<bool(const std::string& host)>& answers);

/// Times that a job asks to be requeued after a process of it was lost: one that dies each time is to end.
inline constexpr int kMostRequeues = 5;

struct BatchOptions {
  int nodes = 1;
  int workers_per_node = 1;  ///< processes of one worker each
  int cores_per_worker = 0;  ///< 0: not asked for
  int gpus_per_node = 0;     ///< 0: not asked for
  std::string time = "01:00:00";
  std::string partition;  ///< empty: Slurm's default
  std::string name = "paceline";
  bool requeue = true;  ///< after a lost host or process the job begins again, from the last checkpoint
  std::filesystem::path script = "paceline.sbatch";
  bool submit = false;
};

/// A job script that runs `program` with `words`, the first of which is the command: train, comm, or one that
/// measures cells. A requeued job goes on: train resumes when a checkpoint is in `out`, the --out of the
/// words; cells that are measured are kept; comm, which takes a minute, begins again.
[[nodiscard]] std::string batch_script(const BatchOptions& options, const std::string& program,
                                       const std::vector<std::string>& words,
                                       const std::filesystem::path& out);

/// `words` as a shell takes them.
[[nodiscard]] std::string shell_line(const std::vector<std::string>& words);

}  // namespace paceline::cli

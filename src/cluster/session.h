#pragma once

/// Session connects this process with the others that a launcher (mpirun, srun) started. It joins them at the
/// start, leaves at the end, and makes sure that one process reports for all.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/process.h"
#include "cluster/assign_gpus.h"
#include "cluster/guard.h"
#include "comm/communicator.h"
#include "comm/failure/probes.h"
#include "comm/launch.h"
#include "comm/process_group.h"
#include "train/given/backend.h"

namespace paceline::cluster {

/// What each process told all others about itself.
struct ProcessInfo {
  int process = 0;
  std::string host;
  std::vector<int> cores;          ///< that it may use
  int cores_of_host = 0;           ///< of the host; inside a Slurm job: of the job there
  int local = 0;                   ///< its number among the processes of its host
  std::string gpus = {};           ///< visible to it: "none", "all 4", "0,1 of 4"
  int usable = 0;                  ///< how many of its cores it can keep busy: fewer under a cgroup's quota
  int pid = 0;                     ///< its process id, as it sees it
  int node = -1;                   ///< memory node of its cores; -1: unknown, or several
  std::vector<SeenGpu> sees = {};  ///< GPUs visible to it, if the command needs them
  std::string command = {};        ///< that started it
};
template <typename A>
void fields(A& archive, base::In<A, ProcessInfo>& value) {
  base::each_member(archive, value.process, value.host, value.cores, value.cores_of_host, value.local,
                    value.gpus, value.usable, value.pid, value.node, value.sees, value.command);
}

/// Threads  made, used and destroyed by the main thread
class Session {
 public:
  /// Joins the processes of `launch`. `deadline`: for all waiting between processes.
  ///
  /// Errors   Error(comm): MPI is not installed, or the launcher's processes do not find one another. If one
  ///          of them does not come at all, MPI tells nobody: then this process is ended, with a message
  Session(const comm::Launch& launch, std::chrono::seconds deadline);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Finds out who shares a host and cores; must be called first. `version` and `command` must be the same in
  /// all processes. `shared_memory`: processes of one host may use it. `gpus`: those visible to this process,
  /// if the command needs them (gpu_table.h). It is not part of the constructor, since another process may
  /// already have passed its own and failed: such a failure is reported and ends the run like any later one.
  ///
  /// Errors   Error(comm): hosts with different versions or commands; another process's failure
  void meet(const std::string& version, const std::string& command, bool shared_memory,
            std::span<const SeenGpu> gpus = {});

  [[nodiscard]] const train::ProcessPlacement& place() const { return place_; }
  /// This process's place if only `members` (numbers of processes, ascending), which include it, run.
  [[nodiscard]] train::ProcessPlacement place_among(std::span<const int> members) const;
  /// The GPUs of this process's workers if `members` run with `workers_each` workers each. Processes of the
  /// host that do not run keep their GPUs, so that a process has the same one in all cells of a study.
  /// `fixed`: all workers take this number. AssignedGpus::is_any_shared is about the GPUs of all hosts.
  [[nodiscard]] AssignedGpus gpus_of(std::span<const int> members, int workers_each,
                                     std::optional<int> fixed = std::nullopt) const;
  /// The process ids of the run's other processes on this host.
  [[nodiscard]] std::vector<int> neighbour_pids() const;
  /// The numbers of all processes: 0 to n-1.
  [[nodiscard]] std::vector<int> all_processes() const;
  [[nodiscard]] comm::ProcessGroup& processes() const { return *processes_; }
  [[nodiscard]] bool is_first() const { return place_.is_first(); }
  [[nodiscard]] const std::vector<ProcessInfo>& members() const { return members_; }

  /// Returns the value of every process, in their order. All processes must call it.
  template <typename T>
  [[nodiscard]] std::vector<T> gather(const T& mine) const {
    return comm::gather_values(*processes_, place_.processes, mine);
  }

  /// Call at the end of a successful command: all leave together. Returns the exit code of this process: that
  /// of the highest signal that stopped one of them, or else `exit_code`.
  ///
  /// Errors   Error(comm) naming the processes that do not come
  [[nodiscard]] int leave(int exit_code);
  /// Call when this process ends with an error. Tells the others, unless they told us, and gives them time to
  /// note it. Returns whether this process should print the error: the first one prints for all while it
  /// exists.
  [[nodiscard]] bool fail(base::ErrorKind kind, const std::string& text);
  /// Call before fail() for an error that all processes have (base::AgreedError): gives the first one time to
  /// write its record and to print the error.
  void let_the_first_speak() const;
  /// The kind of the run's failure, the same in every process.
  [[nodiscard]] base::ErrorKind kind_of_failure(base::ErrorKind otherwise) const;
  /// For Interrupt: whether a signal should be handled without a message, because this is not the first
  /// process, or because the launcher sent it when another process was lost.
  [[nodiscard]] bool silent() const;
  /// Ends this process if its run has failed but it does not exit.
  [[nodiscard]] ExitWatchdog& exit_watchdog() { return *exit_watchdog_; }
  /// Gets warnings about processes that keep the others waiting.
  [[nodiscard]] const std::shared_ptr<train::StallListener>& stalls() const { return stalls_; }

 private:
  void require_one_version(const std::string& version);

  const std::chrono::seconds deadline_;
  const std::optional<std::int64_t> kills_before_ = base::out_of_memory_kills();
  const Guard guard_;  ///< before there are threads
  const std::shared_ptr<train::StallListener> stalls_ = std::make_shared<train::StallListener>();
  const comm::StartupProbe here_;  ///< kept to the end: others may probe after this process has met them
  std::unique_ptr<comm::Wire> wire_;
  std::unique_ptr<comm::ProcessGroup> processes_;
  train::ProcessPlacement place_;
  std::vector<ProcessInfo> members_;           ///< in the order of processes
  std::optional<ExitWatchdog> exit_watchdog_;  ///< last: it uses the above
};

}  // namespace paceline::cluster

#pragma once

/// This process among those that a launcher (mpirun, srun) started: joined at the start, left at the end, and
/// one voice for all of them.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "comm/failure/startup_probe.h"
#include "comm/launch.h"
#include "comm/process_group.h"
#include "train/backend.h"
#include "train/stall_listener.h"

namespace paceline::cli {

/// What each process told all others about itself.
struct ProcessInfo {
  int process = 0;
  std::string host;
  std::vector<int> cores;  ///< that it may use
  int cores_of_host = 0;   ///< that there are; inside a Slurm job: that the job has there
  int local = 0;           ///< its number among the processes of its host
  std::string gpus = {};   ///< that it sees: "none", "all 4", "0,1 of 4"
  int usable = 0;          ///< of its cores, those that it can keep busy: fewer under a cgroup's quota
  int node = -1;           ///< memory node of its cores; -1: unknown, or several
  std::vector<int> nodes_of_gpus = {};  ///< that it sees, likewise; empty: nobody asked
};

/// Threads  made, used and destroyed by the main thread
class Session {
 public:
  /// Joins the processes of `launch`. `deadline`: of all that they wait for one another.
  ///
  /// Errors   Error(comm): MPI is not installed; the launcher's processes do not find one another. Where one
  ///          of them does not come at all MPI tells nobody: the process is then ended, with a sentence
  Session(const comm::Launch& launch, std::chrono::seconds deadline);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Finds out who shares a host and cores; before anything else. `version` and `command` must be the same
  /// everywhere. `shared_memory`: processes of one host may use it. `nodes_of_gpus`: memory nodes of the GPUs
  /// that this process sees, where the command asks for any (gpu_table.h). Not a part of the constructor,
  /// because another process may have passed its own and failed since: such a failure is told, and ends the
  /// run, as any later one does.
  ///
  /// Errors   Error(comm): hosts with different versions or commands; another process's failure
  void meet(const std::string& version, const std::string& command, bool shared_memory,
            std::span<const int> nodes_of_gpus = {});

  [[nodiscard]] const train::ProcessPlacement& place() const { return place_; }
  /// This process's place among `members` alone (numbers of processes, ascending), of which it is one.
  [[nodiscard]] train::ProcessPlacement place_among(std::span<const int> members) const;
  [[nodiscard]] comm::ProcessGroup& processes() const { return *processes_; }
  [[nodiscard]] bool is_first() const { return place_.is_first(); }
  [[nodiscard]] const std::vector<ProcessInfo>& members() const { return members_; }

  /// The text of every process, in their order. All processes together.
  [[nodiscard]] std::vector<std::string> gather(const std::string& mine) const;

  /// At the end of a command that went well: all leave together.
  ///
  /// Errors   Error(comm) naming who does not come
  void part();
  /// This process ends with an error. Tells the others unless they told us, and leaves time to note it.
  /// Returns whether it is for this process to say it: the first one speaks for all while it is there.
  [[nodiscard]] bool fail(base::ErrorKind kind, const std::string& text);
  /// Of an error that all processes have (base::AgreedError), before fail(): gives the first one time to
  /// write its record and to say it.
  void let_the_first_speak() const;
  /// What the run failed with, the same in every process.
  [[nodiscard]] base::ErrorKind kind_of_failure(base::ErrorKind otherwise) const;
  /// For Interrupt: a signal needs no word when it is not the first process's, or when the launcher sent it
  /// because another process was lost.
  [[nodiscard]] bool silent() const;
  /// Hears what is said of processes that keep the others waiting.
  [[nodiscard]] const std::shared_ptr<train::StallListener>& stalls() const { return stalls_; }

 private:
  void require_one_version(const std::string& version);
  /// A thread that hangs in a read of a dead disk cannot be joined: a run that has failed and does not come
  /// to its end is ended from here.
  void end_if_overdue(const std::stop_token& stop) const;

  const std::chrono::seconds deadline_;
  const std::shared_ptr<train::StallListener> stalls_ = std::make_shared<train::StallListener>();
  const comm::StartupProbe here_;  ///< to the end: others may look later than this process has met them
  std::unique_ptr<comm::Wire> wire_;
  std::unique_ptr<comm::ProcessGroup> processes_;
  train::ProcessPlacement place_;
  std::vector<ProcessInfo> members_;  ///< in the order of processes
  std::jthread exit_watchdog_;        ///< last: it looks at processes_
};

}  // namespace paceline::cli

#pragma once

/// A child process beside each process of a run, for what a process that is stopped or killed cannot do
/// itself.
///
/// It kills its parent if that stays stopped (SIGSTOP). During a run the other processes notice a stopped one
/// and give it up. But a launcher waits without limit for a process that is stopped while it exits, and
/// without a launcher such a process stays forever. A process that is stopped together with its child (a
/// suspended job, Ctrl-Z in a terminal) or held by a debugger is left alone.
///
/// And it outlives its parent for a moment if the parent ends without a goodbye. An mpiexec of MPICH's
/// family kills all processes of the run as soon as one of them has closed its output, or the descriptor by
/// which the two speak (PMI_FD). The child has these descriptors too, so the others have time to say which
/// process is lost.

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/error.h"

namespace paceline::cluster {

// Ends a process whose run has failed but that does not exit: a worker that hangs in a read of a dead disk
// or in a call of its GPU cannot be joined.

/// The time from a run's failure to the forced end, for writing a record to a slow disk: 20 s, or the seconds
/// of PACELINE_END_WITHIN, which tests set so as not to wait. Anything but a whole number from 1 is 20 s too.
[[nodiscard]] std::chrono::seconds time_to_end();
/// The time from when a GPU does not answer any more to the forced end. This process then writes no more: it
/// would have to join the thread that waits for the GPU. Older records and checkpoints are complete, since
/// files are renamed when they are. A launcher may end the other processes with this one: they get the time
/// that a process that can exit gives them too (ProcessGroup::leave_after_failure).
inline constexpr std::chrono::seconds kToEndWithoutGpu{5};

/// Ends this process if its run has failed but it does not exit within time_to_end().
class ExitWatchdog {
 public:
  /// `who`: "process 1 on host a", for the message.
  explicit ExitWatchdog(std::string who) : who_(std::move(who)) {}

  struct Failure {
    std::string unsaid;  ///< what the message begins with; "": it was printed
    base::ErrorKind kind;
    base::TimePoint known_at;
  };
  /// From now on asks `failure`, from a thread. A second call does nothing.
  ///
  /// Errors   std::system_error: the system refuses the thread
  void watch(std::function<std::optional<Failure>()> failure);
  /// Call when a GPU does not answer any more; `what` says which call does not return. From now on the time
  /// is kToEndWithoutGpu.
  ///
  /// Threads  any
  void hurry(const std::string& what);

 private:
  const std::string who_;
  std::mutex mutex_;
  std::string hang_;  ///< "": none
  base::TimePoint hangs_since_{};
  std::jthread thread_;  ///< last: it uses all of the above
};

/// Said where a process was lost and base::out_of_memory_kills() has grown.
inline constexpr const char* kOutOfMemory =
    "the kernel ended a process on this host because memory ran out (oom_kill of its cgroup, or of the system, has "
    "grown); take a smaller batch, fewer workers, or a job with more memory";

class Guard {
 public:
  struct Options {
    int process = 0;                       ///< how messages call the parent
    std::chrono::seconds longest_stop{};   ///< after which the parent is killed
    std::chrono::milliseconds outlives{};  ///< how long, a parent that ends without a goodbye
  };
  /// Starts the child. Does nothing if the system has no process or descriptor to spare. One for a process.
  ///
  /// Cost     the child: a page or two of memory, one check a second
  /// Threads  the main thread, before others are started
  explicit Guard(const Options& options);
  /// Calls dismiss(). The descriptors stay open: they tell the child when this process has ended.
  ~Guard() { dismiss(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  /// From now on the child ends as soon as this process does. Call it before each intended end that runs no
  /// destructors (std::_Exit). Does nothing if there is no child.
  ///
  /// Threads  any; also in a signal handler
  static void dismiss();
};

}  // namespace paceline::cluster

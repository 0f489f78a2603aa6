#pragma once

/// ProcessGroup joins the processes of a run: collectives between processes over any Wire (messages), with a
/// FailureDetector that names lost processes.

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/algorithms/exchange.h"
#include "comm/algorithms/staged.h"
#include "comm/failure/detector.h"
#include "comm/failure/probes.h"
#include "comm/shared_memory.h"
#include "comm/wire.h"

namespace paceline::comm {

struct ProcessGroupOptions {
  std::chrono::seconds deadline{60};          ///< a collective that takes longer is Error(comm)
  WireFormat wire_format = WireFormat::fp32;  ///< the format in which gradients are sent
  int ranks_each = 1;                         ///< workers per process, for the names of ranks in messages
  bool shared_memory = true;                  ///< use shared memory if all are on one host; else messages
  std::size_t block_bytes = 131072;           ///< of reductions in shared memory; a multiple of 4096
  DetectorOptions watch;
};

/// The half of each collective that joins processes. A local::Group first joins the ranks of its own process
/// and then uses this with one value for all of them.
///
/// Threads  made and destroyed by one thread. One at a time for the reductions of floats, and one for the
///          blocking calls; both may run at once. fail(), at() and held_up_by(): any
/// Errors   every function throws Error(comm) once any process has failed
class ProcessGroup {
 public:
  /// Connects the failure detector. `say(text)` prints messages; it is called from another thread, at the
  /// process that reports for all.
  ///
  /// Lifetime  `wire` must outlive it
  /// Errors    Error(comm) when the others cannot be reached; the wire has then been given up
  ProcessGroup(Wire& wire, ProcessGroupOptions options, std::function<void(const std::string&)> say);

  /// This process's index among the members of the group (-1: not a member), and their number. Until
  /// regroup() all processes are members, in their own order.
  [[nodiscard]] int process() const { return place_; }
  [[nodiscard]] int processes() const { return members_; }
  [[nodiscard]] std::string name() const { return wire_.name(); }
  [[nodiscard]] std::string algorithm() const {
    if (wire_format_ == WireFormat::bf16) return "exchange (messages, as bf16)";
    if (common_) return "direct (memory of the host)";
    return reductions_ ? "staged (memory of the host)" : "exchange (messages)";
  }

  /// Sums `src` over processes in the tree's order into every process's `dst`, which may be `src`.
  void all_reduce(std::span<const float> src, std::span<float> dst);
  /// The same sum, but process p gets only part p: `src` [processes() * dst.size()]; `dst` may be that part.
  void reduce_scatter(std::span<const float> src, std::span<float> dst);
  /// See Communicator::memory.
  [[nodiscard]] base::Buffer memory(std::size_t bytes);
  void all_reduce(std::span<double> values, Reduce reduce);
  void broadcast(std::span<std::byte> bytes, int root_process);
  /// `all` [processes() * mine.size()]; `mine` may be its own part of it.
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all);
  void barrier();

  /// Tells all processes that this one has failed, and wakes whatever waits here. `kind` becomes the exit
  /// code of every process.
  void fail(const std::string& reason, base::ErrorKind kind);
  /// Calls `told(reason)` from a thread of this object when another process has failed. Replaces the former
  /// function, which is not running any more when this returns; an empty function removes it.
  void on_failure(std::function<void(const std::string&)> told);

  /// Publishes step and phase of this process's first rank, for others to name if the process is lost.
  void at(std::int64_t step, const char* phase);
  /// Publishes that the other ranks of this process wait for `rank`; nullopt: they do not.
  void held_up_by(const std::optional<RankStatus>& rank);
  [[nodiscard]] Traffic traffic() const;  ///< of this process, both channels

  /// The first failure known here.
  [[nodiscard]] std::optional<Failure> failure() const { return detector_->failure(); }
  /// Whether it was detected here. Otherwise another process has reported it, and process 0 has printed it.
  [[nodiscard]] bool failure_is_own() const { return detector_->failure_is_own(); }
  /// At the end of a process that failed: gives process 0 time to note it and to write its record; if process
  /// 0 is lost, gives the others time to hear that this one is there. True when process 0 has taken note.
  bool leave_after_failure();
  /// If all members are on one host, collectives use shared memory from now on, also after later regroup()s.
  /// All call it, once; the constructor does so if its options say so.
  void share_memory();
  /// Restricts collectives to the processes `members`: numbers of the run in ascending order, beginning with
  /// 0. The others take part only in regroup() and order(). All processes call it with the same numbers,
  /// while no collective is in progress. Returns highest(mine).
  int regroup(std::span<const int> members, int mine = 0);
  /// The highest number, 0 to 255, that a process of the run gives, members or not. All processes call it.
  [[nodiscard]] int highest(int mine);
  /// Sends process 0's bytes to all processes, members or not, however long the others have to wait for them.
  void order(std::span<std::byte> bytes);
  /// Ends a run that went well: everybody waits until process 0 has written its files, however long that
  /// takes, then for one another, up to the deadline. So nobody's exit ends a process that still writes, and
  /// the detector finds a stopped process before the library's own shutdown would wait for it. All processes
  /// call it, and get highest(mine); a second call does nothing and returns the same.
  int leave(int mine = 0);
  void set_ranks_each(int ranks) { ranks_each_ = ranks; }
  /// Before the first all-reduce.
  void set_wire_format(WireFormat wire_format) { wire_format_ = wire_format; }
  [[nodiscard]] std::chrono::seconds deadline() const { return deadline_; }
  void set_deadline(std::chrono::seconds deadline) {
    deadline_ = deadline;
    detector_->set_deadline(deadline);
  }

 private:
  /// The name of a collective in messages; evaluated only when a message is printed.
  using LazyName = std::function<std::string()>;
  class Wait;

  void connect(const DetectorOptions& options);
  /// The work of share_memory() among the current members.
  void join_memory();
  [[nodiscard]] bool everywhere(bool here);  ///< whether `here` is true for all members
  /// `round` counts processes by their numbers in the run, `round_of_members` by their index among the
  /// members.
  void round(Channel channel, const LazyName& what, std::span<const Send> sends,
             std::span<const Receive> receives);
  void round_of_members(Channel channel, const LazyName& what, std::span<const Send> sends,
                        std::span<const Receive> receives);
  [[nodiscard]] Round rounds(Channel channel, const LazyName& what) {
    return [this, channel, &what](std::span<const Send> sends, std::span<const Receive> receives) {
      round_of_members(channel, what, sends, receives);
    };
  }
  [[nodiscard]] int number_of(int place) const { return numbers_[static_cast<std::size_t>(place)]; }
  /// Runs `collective(staged, keep_waiting)`, a function of Staged.
  template <typename Collective>
  void stage(Staged& staged, const LazyName& what, const Collective& collective);
  /// Throws: the failure of another process, or a failure that names the late processes.
  void lose(const std::vector<int>& missing, const LazyName& what);
  [[nodiscard]] std::string ranks_of(int process) const;
  [[nodiscard]] std::string late(const std::vector<int>& missing, const std::string& what) const;
  void check() const;
  void take_failure(const Failure& failure);
  void count(const Traffic& moved);

  Wire& wire_;
  std::vector<std::atomic<int>> numbers_;  ///< [place]: number in the run; the first `members_` are valid
  std::atomic<int> members_;
  std::atomic<int> place_;
  bool shares_memory_ = false;  ///< share_memory() was called
  const std::size_t wanted_block_;
  std::atomic<int> ranks_each_;
  std::atomic<std::chrono::seconds> deadline_;
  std::function<void(const std::string&)> say_;
  std::atomic<bool> failed_{false};
  std::optional<int> parted_with_;  ///< what leave() has returned
  std::atomic<WireFormat> wire_format_;
  ExchangeRoom room_;  ///< used by the reductions' thread
  /// If all members are on one host: their shared memory and its two streams.
  std::optional<SharedMemory> memory_;
  std::optional<Staged> reductions_, exchanges_;
  /// [place] the result of the last memory(); shared with its users, and released by all processes together.
  std::shared_ptr<const std::vector<SharedMemory>> common_;

  mutable std::mutex mutex_;  ///< guards the next two members
  std::function<void(const std::string&)> on_failure_;
  Traffic traffic_;

  std::unique_ptr<SurvivorProbe> survivor_probe_;  ///< process 0 has none
  std::unique_ptr<FailureDetector> detector_;      ///< last: its thread uses all of the above
};

}  // namespace paceline::comm

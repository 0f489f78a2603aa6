#pragma once

/// The shared state of the ranks of one process: where they meet for collectives, and what happens when one
/// of them does not come.
///
/// There are two queues, each with its own order: `reductions` (asynchronous, done by the ranks' progress
/// threads) and `exchanges` (small and blocking, done by the callers). So the statistics of a synchronised
/// batch norm need not wait behind gradient buckets.
///
/// In each queue a rank's k-th call belongs to collective k. The first rank to come opens an Operation, every
/// other one must bring the same Description, and the last one starts the work. A failure (abort, mismatch,
/// deadline) is final for the group: no work starts after it, all waiting ranks wake up, and every call
/// throws it.
///
/// The group may be one process of several (ProcessGroup). Then a collective has a second half: the
/// joined value of this process is reduced with those of other processes, and the result goes to all ranks. A
/// thread of the group does this half for reductions, in order. Meanwhile the next one is summed inside the
/// process, and the backward pass continues. If that thread has not begun when a rank waits, the rank does it
/// itself. A small message with nothing before it is left to the waiting rank, since waking a thread takes
/// longer. For exchanges the last rank to come does the second half. Ranks count from 0 inside the group;
/// messages use the run's numbers.
///
/// If all ranks of a process that runs alone hang, nobody waits in a collective. A thread of the group
/// detects that.
///
/// Threads   any. One mutex guards all state, and is never held while data is moved
/// Lifetime  the N communicators share it; the last one destroys it

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "comm/communicator.h"
#include "comm/failure/rank_status.h"
#include "comm/failure/stall_detector.h"
#include "comm/process_group.h"

namespace paceline::comm::local {

/// In the order of the texts in to_string().
enum class OperationKind {
  all_reduce,
  reduce_scatter,
  memory,
  small_reduce,
  broadcast,
  all_gather,
  scatter,
  gather,
  reduce,
  barrier
};

/// What all ranks must agree on.
struct Description {
  OperationKind kind = OperationKind::barrier;
  std::size_t count = 0;  ///< floats, doubles or bytes of one rank; reduce_scatter: floats of its part
  Reduce reduce = Reduce::sum;
  int root = 0;
  bool operator==(const Description&) const = default;
};
[[nodiscard]] std::string to_string(const Description& what);

/// One rank's buffers; others read them once all have come.
struct RankBuffers {
  const void* source = nullptr;
  void* target = nullptr;
};

/// A collective in progress.
struct Operation {
  explicit Operation(int ranks)
      : places(static_cast<std::size_t>(ranks)), came(static_cast<std::size_t>(ranks)) {}
  void begin(const Description& description, std::int64_t number);

  Description what;
  std::int64_t sequence = 0;
  std::vector<RankBuffers> places;  ///< [rank]; constant once all have come
  base::Buffer sum;                 ///< reduce_scatter over several ranks and processes: this process's sum

  // Guarded by the group's mutex.
  std::vector<bool> came;
  int arrived = 0;
  int working = 0;              ///< threads that are accessing the ranks' memory
  int finished = 0;             ///< of N parts
  bool left_to_waiter = false;  ///< too small to wake the thread between processes

  base::TimePoint begun_at{};     ///< if left to the waiter: its begin; written before `done`, read after it
  base::TimePoint done_at{};      ///< written before `done`, read after it
  std::atomic<bool> done{false};  ///< atomic so that a waiting rank can check it without the mutex
};
using OperationRef =
    std::shared_ptr<Operation>;  ///< shared by the group and each rank that still waits for it

class Group {
 public:
  /// `across` joins this group with those of other processes, which have the same number of ranks; nullptr:
  /// no other processes. It must outlive the group.
  Group(int ranks, std::chrono::milliseconds deadline, ProcessGroup* across = nullptr,
        StallOptions stall_options = {});
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] ProcessGroup* across() const { return across_; }
  /// The run's number of the group's rank 0; and the number of ranks of the run.
  [[nodiscard]] int first_rank() const { return across_ == nullptr ? 0 : across_->process() * ranks_; }
  [[nodiscard]] int world() const { return across_ == nullptr ? ranks_ : across_->processes() * ranks_; }

  /// Publishes where a rank is, for others to name if it does not come.
  ///
  /// Threads  one per rank
  void at(int rank, std::int64_t step, const char* phase);

  /// Begins an asynchronous all_reduce or reduce_scatter with this rank's buffers; progress threads do the
  /// work.
  [[nodiscard]] OperationRef post(int rank, const Description& what, RankBuffers place);

  /// Blocking: waits for the others; the last one to come runs `work` (with all buffers) for everybody. An
  /// exception of `work` is thrown there, and fails the group.
  using Work = std::function<void(const std::vector<RankBuffers>&)>;
  void exchange(int rank, const Description& what, RankBuffers place, const Work& work);

  /// Blocks until `operation` is done. If nobody has begun its half between processes, the caller does it.
  ///
  /// Errors   Error(comm) with the group's failure. Then no thread of this process accesses the rank's memory
  ///          any more; other processes may, if they have mapped it (Communicator::memory)
  void wait(Operation& operation);
  /// For a rank that abandons `operation` without waiting: fails the group unless the operation is done.
  void give_up(Operation& operation, int rank) noexcept;

  /// The body of rank `rank`'s progress thread, until stop(rank): its part of every reduction, in order.
  void serve(int rank);
  void stop(int rank) noexcept;

  void abort(int rank, const std::string& reason, base::ErrorKind kind);
  /// Throws the group's failure, if there is one.
  void check() const;

  [[nodiscard]] Traffic traffic(int rank) const;
  void count(int rank, const Traffic& more);

 private:
  struct CollectiveQueue {
    std::deque<OperationRef> open;   ///< not yet done, oldest first
    std::int64_t first = 0;          ///< sequence number of open.front()
    std::vector<std::int64_t> next;  ///< [rank]: the collective that the rank posts next
    OperationRef spare;              ///< the last one that was done, for reuse
    explicit CollectiveQueue(int ranks) : next(static_cast<std::size_t>(ranks)) {}
    void drop_done();
  };
  struct ProgressThread {
    std::condition_variable wake;
    std::int64_t next = 0;  ///< the reduction that this rank's thread does next
    bool stop = false;
  };

  /// Does rank `rank`'s part of `operation` inside the process; returns what it read and wrote for other
  /// ranks.
  [[nodiscard]] Traffic do_part(Operation& operation, int rank) const;
  void go_across(Operation& operation) const;
  /// The body of the thread for reductions between processes.
  void serve_across();
  void begin_reduction(const OperationRef& operation);  ///< all ranks have come; mutex held
  void finish_reduction(Operation& operation);          ///< mutex held
  void queue_across(const OperationRef& operation);     ///< mutex held
  /// Does the next one in the queue; releases `lock` while it runs.
  void do_next_across(std::unique_lock<std::mutex>& lock);
  void help(Operation& operation);

  // These require the mutex.
  OperationRef arrive(CollectiveQueue& queue, int rank, const Description& what, RankBuffers place);
  [[nodiscard]] OperationRef new_operation(CollectiveQueue& queue) const;
  void fail(std::string text, base::ErrorKind kind = base::ErrorKind::comm);
  void throw_if_failed() const;
  [[nodiscard]] RankStatus place_of_rank(int rank) const;
  /// "rank 1 on host b (last in backward of step 97)"
  [[nodiscard]] std::string name_of_rank(int rank) const;
  [[nodiscard]] std::string late(const Operation& operation) const;
  /// Called now and then by a rank that waits for `operation`; releases `lock` while it prints.
  void look_for_who_is_late(std::unique_lock<std::mutex>& lock, const Operation& operation,
                            StallDetector& stall_detector, WorkMeter& work);
  /// The body of the thread that checks whether all ranks hang.
  void look_for_standstill();
  [[nodiscard]] std::vector<RankStatus> places_of_ranks() const;

  const int ranks_;
  ProcessGroup* const across_;
  const std::chrono::milliseconds deadline_;
  const StallOptions stall_options_;
  const int spins_;  ///< how often a waiting rank checks before it sleeps; 0 with more ranks than cores

  mutable std::mutex mutex_;
  std::condition_variable changed_;  ///< an operation is done, or the group has failed
  CollectiveQueue reductions_;
  CollectiveQueue exchanges_;
  std::vector<std::unique_ptr<ProgressThread>> progress_;  ///< [rank]
  std::vector<Traffic> traffic_;                           ///< [rank]
  std::vector<base::TimePoint> said_;                      ///< [rank]: when it was last reported as late
  int waiting_ = 0;                                        ///< ranks in wait()
  bool failed_ = false;
  std::string failure_;

  struct Where {
    std::atomic<std::int64_t> step{0};
    std::atomic<const char*> phase{nullptr};
    std::atomic<std::int64_t> signs{0};  ///< calls of at()
  };
  std::vector<Where> where_;  ///< [rank]; not guarded by the mutex

  std::deque<OperationRef> summed_;  ///< reductions whose first half is done, waiting for the second
  std::condition_variable across_wake_;
  bool across_busy_ = false;   ///< one reduction at a time is in its second half
  std::thread across_thread_;  ///< started at the first reduction by a rank's thread, whose cores it inherits

  bool is_over_ = false;  ///< ends both threads
  std::condition_variable over_;
  std::thread standstill_thread_;
};

// The communicator of worker threads in one process: shared memory, no copies. If the process is one of
// several, ProcessGroup does each collective's second half, and ranks count over all processes.

/// The communicator of rank `rank` of `group`. The thread that first calls all_reduce starts its progress
/// thread, which inherits that thread's cores and so works next to its rank.
[[nodiscard]] std::unique_ptr<Communicator> join(std::shared_ptr<Group> group, int rank);

}  // namespace paceline::comm::local

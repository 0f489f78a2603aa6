#pragma once

/// What the ranks of one process share: where they meet, and what happens when one of them does not come.
///
/// There are two queues, each with its own order: `reductions` (asynchronous, done by the ranks' progress
/// threads) and `exchanges` (small and blocking, done by the callers). They are apart so that the statistics
/// of a synchronised batch norm need not wait behind the gradient buckets that are under way.
///
/// In each queue a rank's k-th call is collective k. The first to come opens an Operation, every other must
/// bring the same Description, and the last to come starts the work. A failure (abort, mismatch, deadline) is
/// final for the group: no work starts after it, all waiting ranks are woken, and every call throws it.
///
/// The group may be one process of several (InterProcessComm). Then a collective has a second half: what the
/// group's ranks have joined goes across, and what comes back goes to all of them. Reductions are handed, in
/// order, to a thread of the group that does this half, so the next one is summed inside the process
/// meanwhile, and the backward pass goes on. A rank that waits does it itself where the thread has not begun,
/// and a small message with nothing before it is left to that: waking a thread takes longer than the message.
/// Exchanges go across in the thread of the last to come. Ranks are counted from 0 inside the group;
/// sentences name them as the run does.
///
/// Where all ranks of a process that is alone hang, nobody waits in a collective: a thread of the group looks
/// for that.
///
/// Threads  all functions may be called from any thread; one mutex guards all state, and is never held while
///          data is moved
/// Lifetime shared by the N communicators: the last one to be destroyed ends it

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "comm/communicator.h"
#include "comm/failure/rank_status.h"
#include "comm/failure/stall_options.h"
#include "comm/inter_process_comm.h"

namespace paceline::comm {
class WorkMeter;
}

namespace paceline::comm::local {

class StallDetector;

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

/// Where one rank's data lies; read by others once all have come.
struct RankBuffers {
  const void* source = nullptr;
  void* target = nullptr;
};

/// One collective under way.
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
  int working = 0;              ///< threads that touch the ranks' memory now
  int finished = 0;             ///< of N parts
  bool left_to_waiter = false;  ///< not worth waking the thread between processes

  base::TimePoint begun_at{};     ///< left to the waiter: when it began; written before `done`, read after it
  base::TimePoint done_at{};      ///< written before `done`, read after it
  std::atomic<bool> done{false};  ///< atomic so that a waiting rank may look without the mutex
};
using OperationRef =
    std::shared_ptr<Operation>;  ///< shared by the group and each rank that still waits for it

class Group {
 public:
  /// `across` joins this group with those of other processes, of as many ranks each; nullptr: there are none.
  /// It outlives the group.
  Group(int ranks, std::chrono::milliseconds deadline, InterProcessComm* across = nullptr,
        StallOptions stall_options = {});
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] InterProcessComm* across() const { return across_; }
  /// The run's number of the group's rank 0, and of all ranks together.
  [[nodiscard]] int first_rank() const { return across_ == nullptr ? 0 : across_->process() * ranks_; }
  [[nodiscard]] int world() const { return across_ == nullptr ? ranks_ : across_->processes() * ranks_; }

  /// Where a rank is, for others to say if it does not come.
  ///
  /// Threads  of each rank one
  void at(int rank, std::int64_t step, const char* phase);

  /// Asynchronous all_reduce or reduce_scatter: announces this rank's buffers. The progress threads do the
  /// rest.
  [[nodiscard]] OperationRef post(int rank, const Description& what, RankBuffers place);

  /// Blocking: meets the others; the last to come runs `work` (with all places) for everybody. What `work`
  /// throws comes out there, and fails the group.
  using Work = std::function<void(const std::vector<RankBuffers>&)>;
  void exchange(int rank, const Description& what, RankBuffers place, const Work& work);

  /// Blocks until `operation` is done; what nobody has begun between processes, the caller's thread does.
  /// Errors: Error(comm) with the group's failure; nobody touches this rank's memory any more when it is
  /// thrown, other processes excepted where they have their own way into it (Communicator::memory).
  void wait(Operation& operation);
  /// For a rank that leaves `operation` without waiting: fails the group unless it is done.
  void give_up(Operation& operation, int rank) noexcept;

  /// What rank `rank`'s progress thread runs until stop(rank): its part of every reduction, in order.
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
    OperationRef spare;              ///< the last that was done, to be used again
    explicit CollectiveQueue(int ranks) : next(static_cast<std::size_t>(ranks)) {}
    void drop_done();
  };
  struct ProgressThread {
    std::condition_variable wake;
    std::int64_t next = 0;  ///< the reduction this rank's thread does next
    bool stop = false;
  };

  /// Rank `rank`'s part of `operation`, in the process; what it read from and wrote for other ranks.
  [[nodiscard]] Traffic do_part(Operation& operation, int rank) const;
  void go_across(Operation& operation) const;
  /// What the thread for reductions between processes runs.
  void serve_across();
  void begin_reduction(const OperationRef& operation);  ///< all ranks have come; mutex held
  void finish_reduction(Operation& operation);          ///< mutex held
  void queue_across(const OperationRef& operation);     ///< mutex held
  /// The next one in the queue; holds `lock` but while it goes on.
  void do_next_across(std::unique_lock<std::mutex>& lock);
  void help(Operation& operation);

  // All with the mutex held.
  OperationRef arrive(CollectiveQueue& queue, int rank, const Description& what, RankBuffers place);
  [[nodiscard]] OperationRef new_operation(CollectiveQueue& queue) const;
  void fail(std::string text, base::ErrorKind kind = base::ErrorKind::comm);
  void throw_if_failed() const;
  [[nodiscard]] RankStatus place_of_rank(int rank) const;
  /// "rank 1 on host b (last in backward of step 97)"
  [[nodiscard]] std::string name_of_rank(int rank) const;
  [[nodiscard]] std::string late(const Operation& operation) const;
  /// By one that waits for `operation`, now and then; lets go of `lock` while it says something.
  void look_for_who_is_late(std::unique_lock<std::mutex>& lock, const Operation& operation,
                            StallDetector& stall_detector, WorkMeter& work);
  /// What the thread runs that looks whether all ranks hang.
  void look_for_standstill();
  [[nodiscard]] std::vector<RankStatus> places_of_ranks() const;

  const int ranks_;
  InterProcessComm* const across_;
  const std::chrono::milliseconds deadline_;
  const StallOptions stall_options_;
  const int spins_;  ///< how often a waiting rank looks before it sleeps; none with more ranks than cores

  mutable std::mutex mutex_;
  std::condition_variable changed_;  ///< an operation is done, or the group has failed
  CollectiveQueue reductions_;
  CollectiveQueue exchanges_;
  std::vector<std::unique_ptr<ProgressThread>> progress_;  ///< [rank]
  std::vector<Traffic> traffic_;                           ///< [rank]
  std::vector<base::TimePoint> said_;                      ///< [rank]: that it lets others wait
  int waiting_ = 0;                                        ///< ranks, in wait()
  bool failed_ = false;
  std::string failure_;

  struct Where {
    std::atomic<std::int64_t> step{0};
    std::atomic<const char*> phase{nullptr};
    std::atomic<std::int64_t> signs{0};  ///< calls of at()
  };
  std::vector<Where> where_;  ///< [rank]; not guarded

  std::deque<OperationRef> summed_;  ///< reductions whose first half is done, to go across
  std::condition_variable across_wake_;
  bool across_busy_ = false;   ///< one reduction at a time goes across
  std::thread across_thread_;  ///< made at the first reduction, by a rank's thread: it inherits its cores

  bool is_over_ = false;  ///< ends both threads
  std::condition_variable over_;
  std::thread standstill_thread_;
};

}  // namespace paceline::comm::local

#pragma once

/// One rank's NCCL communicator, with its stream and the collectives in progress on it.
///
/// Calls of NCCL that continue in the background are polled; with `is_blocking` none does, and the
/// start, which waits for all ranks, has a thread of its own. Any failure (an error of NCCL, a collective
/// that is not done by its deadline, a call of NCCL or of the device that does not return, a failure of the
/// host communicator, which knows of lost ranks) is reported to the host communicator, then ends in
/// ncclCommAbort, which also ends what the device waits for.
///
/// Two threads watch, since any call of NCCL or of the device may never return: a driver waits inside a call
/// for the device to drain, and the device waits for a rank that is lost. One thread asks the device and
/// NCCL, and aborts. The other one decides, calls neither, and takes no lock that is held in such a call. If
/// calls of NCCL block, the abort takes none either: it is what ends them.
///
/// Errors   every call: the first failure, as Error(comm) with rank and collective; Error(device) of the
///          stream
/// Threads  the engine's

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/side_stream.h"
#include "comm/communicator.h"
#include "comm/nccl/api.h"

namespace paceline::comm::nccl {

/// What names a collective in messages.
struct CollectiveName {
  const char* function = "";  ///< "all_reduce"
  std::size_t count = 0;      ///< floats of this rank's dst
  std::int64_t number = 0;    ///< from 1 on, in the order posted
};

/// A collective and its two marks on the stream, which it keeps until nobody refers to it.
struct Operation {
  CollectiveName name;
  int begin = 0, end = 0;
  bool is_under_way = false;
};
using OperationRef = std::shared_ptr<Operation>;

class Connection {
 public:
  /// `host` joins the same ranks, and outlives this. The last three are those of Options in nccl.h.
  Connection(const Api& api, std::unique_ptr<base::SideStream> stream, Communicator& host,
             std::chrono::milliseconds deadline, bool is_blocking,
             std::function<void(const std::string&)> hangs);
  /// Aborts NCCL. While a call does not return, this does not either: the thread in it uses these members,
  /// and `hangs` has been called.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Joins the ranks that pass the same `id`. A collective call, once; blocks.
  void open(const UniqueId& id);

  /// Enqueues a collective on the stream, after all work that the engine has enqueued.
  using Call = std::function<Status(Comm, void* stream)>;
  /// Work on the stream that follows the call and belongs to the collective.
  using Finish = std::function<void(base::SideStream&)>;
  [[nodiscard]] OperationRef post(const char* name, std::size_t count, const char* function, const Call& call,
                                  const Finish& finish = {});
  /// Orders the engine's later work after `operation`.
  void order(const Operation& operation);
  [[nodiscard]] bool is_done(const Operation& operation) const;
  /// Blocks until it is done. In the result, `posted` is when the device reached it.
  [[nodiscard]] Timing timing(const Operation& operation);

  /// Throws the failure, if there is one.
  ///
  /// Threads  any
  void check() const;

 private:
  using Lock = std::unique_lock<std::mutex>;
  /// Locks the device's mutex. Throws the failure, also while another thread holds the mutex in a call that
  /// does not return.
  [[nodiscard]] Lock enter() const;
  void enter(Lock& lock) const;
  /// Calls NCCL, which sets opened_ and comm_.
  void join(const UniqueId& id);
  /// join() if calls block.
  void open_in_thread(const UniqueId& id);
  [[nodiscard]] OperationRef new_operation();
  /// Waits until a call that continues in the background is over.
  void settle(Lock& lock, const std::string& what, const char* function, Status status);

  void ask();  ///< one look of the thread that calls the device and NCCL
  /// Locks the device's mutex for ask(). False: the rank has failed while a call that blocks holds it.
  [[nodiscard]] bool lock_to_ask(Lock& lock) const;
  void check_device();  ///< which collectives are done, and whether NCCL has failed
  void check_host();    ///< gives up if the host's communicator has failed
  void decide();        ///< one look of the thread that calls neither
  /// Gives up at the deadline, or if ask() stands still. `passed`: since the last look.
  void check_time(base::Clock::duration passed);

  void ask_of(Operation& operation);
  void note_done(std::int64_t number);            ///< of a collective, and of all before it
  [[nodiscard]] std::string in_progress() const;  ///< "all_reduce 7 of 1000 floats", the oldest
  [[nodiscard]] std::string late(const std::string& what) const;
  [[nodiscard]] std::string hang()
      const;  ///< "nccl: rank 1 of 4 (...): ncclAllReduce does not return, in ..."
  [[nodiscard]] std::string stuck() const;  ///< the sentence about that, where it is the failure
  /// Keeps the first failure and tells the host's communicator; ask() then aborts NCCL.
  void give_up(base::ErrorKind kind, const std::string& text);
  /// The same after a call of NCCL that failed.
  void give_up_after(const std::string& what, const char* function, Status status);
  [[nodiscard]] bool has_failed() const;

  const Api& api_;
  std::unique_ptr<base::SideStream> stream_;
  Communicator& host_;
  const std::chrono::milliseconds deadline_, patience_;
  const bool is_blocking_;
  const std::string who_;  ///< "nccl: rank 1 of 4 (device 0000:3B:00.0)"

  mutable std::mutex
      device_mutex_;  ///< guards the members below, and is held in calls of NCCL and the device
  std::vector<OperationRef> operations_;
  std::int64_t posted_ = 0;

  mutable std::mutex mutex_;  ///< guards the members below, and is never held in such a call
  std::optional<base::Error> failure_;
  bool is_open_ = false;
  std::deque<CollectiveName> under_way_;  ///< that are not known to be done, oldest first
  bool is_posting_ = false;               ///< the last of them
  std::int64_t begun_ = 0;                ///< the last that the device is known to have reached

  std::atomic<Comm> comm_{nullptr};  ///< null before open() and after an abort
  std::thread opens_;                ///< of open_in_thread()
  Status opened_ = kSuccess;         ///< what join() got; read when is_opening_ is false
  std::atomic<bool> is_opening_{false};
  mutable std::atomic<const char*> call_{""};  ///< the last call that was begun, for messages
  std::atomic<std::int64_t> looks_{0};         ///< of ask(), that have returned
  std::atomic<bool> is_over_{false};

  // Of decide() alone.
  std::function<void(const std::string&)> hangs_;
  base::TimePoint decided_{};
  std::int64_t looks_seen_ = 0, watched_ = 0;
  base::Clock::duration stands_still_{};  ///< how long looks_ has not moved
  base::Clock::duration opens_still_{};   ///< how long the start has gone on after a failure
  base::Clock::duration waited_{};        ///< how long collective `watched_`, which has begun, was the oldest

  std::jthread asks_, decides_;  ///< last: they use all of the above
};

}  // namespace paceline::comm::nccl

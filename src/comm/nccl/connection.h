#pragma once

/// One rank's NCCL communicator, with its stream and the collectives in progress on it.
///
/// Nothing blocks inside NCCL: calls that continue in the background are polled, and a thread watches the
/// collectives. Any failure (an error of NCCL, a collective that is not done by its deadline, a failure of
/// the host communicator, which knows of lost ranks) ends in ncclCommAbort, which also ends what the device
/// waits for, and is reported to the host communicator.
///
/// Errors   every call: the first failure, as Error(comm) with rank and collective; Error(device) of the
///          stream
/// Threads  the engine's

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/side_stream.h"
#include "comm/communicator.h"
#include "comm/nccl/api.h"
#include "comm/nccl/watch.h"

namespace paceline::comm::nccl {

/// A collective and its two marks on the stream, which it keeps until nobody refers to it.
struct Operation {
  const char* name = "";    ///< "all_reduce"
  std::size_t count = 0;    ///< floats of this rank's dst
  std::int64_t number = 0;  ///< from 1 on, in the order posted
  int begin = 0, end = 0;
  bool is_under_way = false;
};
using OperationRef = std::shared_ptr<Operation>;

class Connection {
 public:
  /// `host` joins the same ranks, and outlives this.
  Connection(const Api& api, std::unique_ptr<base::SideStream> stream, Communicator& host,
             std::chrono::milliseconds deadline);
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
  [[nodiscard]] OperationRef new_operation();
  /// Waits until a call that continues in the background is over.
  void settle(Lock& lock, const std::string& what, const char* function, Status status);
  void look();                            ///< called by the watch
  [[nodiscard]] std::string who() const;  ///< "nccl: rank 1 of 4 (device 0000:3B:00.0)"
  [[nodiscard]] static std::string text_of(const Operation& operation);
  [[nodiscard]] std::string late(const std::string& what) const;
  /// Keeps the first failure, aborts NCCL and tells the host's communicator. Requires the mutex.
  void give_up(base::ErrorKind kind, const std::string& text);
  void throw_failure() const;

  const Api& api_;
  const std::unique_ptr<base::SideStream> stream_;
  Communicator& host_;
  const std::chrono::milliseconds deadline_;
  mutable std::mutex mutex_;  ///< guards the members below, and is held in every call of NCCL
  Comm comm_ = nullptr;       ///< null before open() and after an abort
  std::optional<base::Error> failure_;
  std::vector<OperationRef> operations_;
  OperationRef posting_;  ///< whose call is in progress
  std::int64_t posted_ = 0;
  std::int64_t watched_ = 0;  ///< the oldest collective that has begun, and since when that is known
  base::TimePoint watched_since_{};
  std::optional<Watch> watch_;  ///< last: it uses all of the above
};

}  // namespace paceline::comm::nccl

#pragma once

/// One rank's NCCL communicator, with its stream and what is under way on it.
///
/// Nothing blocks inside NCCL: calls that go on in the background are asked for until they are over, and
/// collectives are watched from a thread of their own. Whatever goes wrong (an error of NCCL's, a collective
/// that is not done by its deadline, the failure of the host communicator, which knows of lost ranks) ends
/// here with ncclCommAbort, which also ends what the device waits in, and is told to the host communicator.
///
/// Errors   every call: the first failure, Error(comm) with rank and collective; Error(device) of the
/// stream's Threads  the engine's

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

/// A collective, and its two marks on the stream: both belong to it until nobody holds it any more.
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

  /// Joins the ranks that were given the same `id`. Collective, once; blocks.
  void open(const UniqueId& id);

  /// Puts a collective on the stream, behind all that the engine was given.
  using Call = std::function<Status(Comm, void* stream)>;
  /// What belongs to the collective and follows the call.
  using Finish = std::function<void(base::SideStream&)>;
  [[nodiscard]] OperationRef post(const char* name, std::size_t count, const char* function, const Call& call,
                                  const Finish& finish = {});
  /// The engine goes on behind `operation`.
  void order(const Operation& operation);
  [[nodiscard]] bool is_done(const Operation& operation) const;
  /// Blocks until it is done. posted: when the device came to it.
  [[nodiscard]] Timing timing(const Operation& operation);

  /// Throws the failure, if there is one. Threads   any
  void check() const;

 private:
  using Lock = std::unique_lock<std::mutex>;
  [[nodiscard]] OperationRef new_operation();
  /// Until a call that goes on in the background is over.
  void settle(Lock& lock, const std::string& what, const char* function, Status status);
  void look();                            ///< the watch's
  [[nodiscard]] std::string who() const;  ///< "nccl: rank 1 of 4 (device 0000:3B:00.0)"
  [[nodiscard]] static std::string text_of(const Operation& operation);
  [[nodiscard]] std::string late(const std::string& what) const;
  /// Keeps the first failure, ends NCCL's part and tells the host's communicator. Mutex held.
  void give_up(base::ErrorKind kind, const std::string& text);
  void throw_failure() const;

  const Api& api_;
  const std::unique_ptr<base::SideStream> stream_;
  Communicator& host_;
  const std::chrono::milliseconds deadline_;
  mutable std::mutex mutex_;  ///< of all below, and held in every call of NCCL's
  Comm comm_ = nullptr;       ///< null before open() and after an abort
  std::optional<base::Error> failure_;
  std::vector<OperationRef> operations_;
  OperationRef posting_;  ///< whose call goes on
  std::int64_t posted_ = 0;
  std::int64_t watched_ = 0;  ///< the oldest that has begun, and since when it was seen so
  base::TimePoint watched_since_{};
  std::optional<Watch> watch_;  ///< last: ended before what it looks at
};

}  // namespace paceline::comm::nccl

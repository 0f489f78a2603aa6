#pragma once

/// Messages between processes: the interface to a message-passing library (MPI, gloo), on which
/// process_group.h builds the collectives. Each library is one implementation, in a module of its own.
///
/// Threads   one caller at a time per channel; two threads may use two channels at once
/// Lifetime  destroyed last. The destructor shuts the library down in this process, and waits for nobody once
///           give_up() was called

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/error.h"
#include "comm/communicator.h"
#include "comm/failure/rank_status.h"

namespace paceline::comm {

// The half of each collective that joins processes. A local::Group first joins the ranks of its own process
// and then uses this interface with one value for all of them.
//
// Threads  one thread at a time for the reductions of floats, and one for the blocking calls; both may run
//          at once. fail(), at() and held_up_by(): any
// Errors   every function throws Error(comm) once any process has failed

class InterProcessComm {
 public:
  virtual ~InterProcessComm() = default;
  [[nodiscard]] virtual int process() const = 0;
  [[nodiscard]] virtual int processes() const = 0;
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual std::string algorithm() const = 0;

  /// Sums `src` over processes in the tree's order into every process's `dst`, which may be `src`.
  virtual void all_reduce(std::span<const float> src, std::span<float> dst) = 0;
  /// The same sum, but process p gets only part p: `src` [processes() * dst.size()]; `dst` may be that part.
  virtual void reduce_scatter(std::span<const float> src, std::span<float> dst) = 0;
  /// See Communicator::memory.
  [[nodiscard]] virtual base::Buffer memory(std::size_t bytes) = 0;
  virtual void all_reduce(std::span<double> values, Reduce reduce) = 0;
  virtual void broadcast(std::span<std::byte> bytes, int root_process) = 0;
  /// `all` [processes() * mine.size()]; `mine` may be its own part of it.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  virtual void barrier() = 0;

  /// Tells all processes that this one has failed, and wakes whatever waits here. `kind` becomes the exit
  /// code of every process.
  virtual void fail(const std::string& reason, base::ErrorKind kind) = 0;
  /// Calls `told(reason)` from a thread of this object when another process has failed. Replaces the former
  /// function, which is not running any more when this returns; an empty function removes it.
  virtual void on_failure(std::function<void(const std::string&)> told) = 0;

  /// Publishes step and phase of this process's first rank, for others to name if the process is lost.
  virtual void at(std::int64_t step, const char* phase) = 0;
  /// Publishes that the other ranks of this process wait for `rank`; nullopt: they do not.
  virtual void held_up_by(const std::optional<RankStatus>& rank) = 0;
  [[nodiscard]] virtual Traffic traffic() const = 0;  ///< of this process, both channels
};

struct Send {
  int to = 0;
  std::span<const std::byte> bytes;
};
struct Receive {
  int from = 0;
  std::span<std::byte> bytes;
};

/// Messages of one channel are never received on the other.
enum class Channel { reductions, exchanges };

class Wire {
 public:
  virtual ~Wire() = default;
  [[nodiscard]] virtual int process() const = 0;
  [[nodiscard]] virtual int processes() const = 0;
  [[nodiscard]] virtual std::string name() const = 0;     ///< "mpi"
  [[nodiscard]] virtual std::string library() const = 0;  ///< "Open MPI 4.1.4"

  /// Sends and receives all given messages, in any order. Returns when every byte has arrived and the memory
  /// may be reused. Messages between two processes arrive in the order sent. While nothing arrives, it calls
  /// `keep_waiting` now and then, and returns at once if that returns false.
  ///
  /// Returns an empty list when all is done, else the processes that were still waited for. Then the memory
  /// must stay alive as long as this object, since the library may still use it.
  ///
  /// Errors   Error(comm): the library failed, or a message was longer than its buffer
  [[nodiscard]] virtual std::vector<int> swap(Channel channel, std::span<const Send> sends,
                                              std::span<const Receive> receives,
                                              const std::function<bool()>& keep_waiting) = 0;

  /// Call it when peers are lost: from now on nothing is waited for, and the library ends without a goodbye.
  virtual void give_up() = 0;
};

}  // namespace paceline::comm

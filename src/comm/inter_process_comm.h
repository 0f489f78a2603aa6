#pragma once

/// What the ranks of one process (a local::Group) need of the other processes: each collective's second half.
/// The group joins its own ranks first and hands over one value for all of them.
///
/// Threads  the reductions of floats from one thread at a time, the blocking ones from one thread at a time;
///          the two may run at once. fail(), at() and held_up_by() from any
/// Errors   every function throws Error(comm) once one process has failed

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/buffer.h"
#include "base/error.h"
#include "comm/communicator.h"
#include "comm/failure/rank_status.h"

namespace paceline::comm {

class InterProcessComm {
 public:
  virtual ~InterProcessComm() = default;
  [[nodiscard]] virtual int process() const = 0;
  [[nodiscard]] virtual int processes() const = 0;
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual std::string algorithm() const = 0;

  /// Sums `src` over processes into every process's `dst`, which may be `src`, in the tree's order.
  virtual void all_reduce(std::span<const float> src, std::span<float> dst) = 0;
  /// The same sum, of which process p gets part p: `src` [processes() * dst.size()]; `dst` may be that part
  /// of it.
  virtual void reduce_scatter(std::span<const float> src, std::span<float> dst) = 0;
  /// See Communicator::memory.
  [[nodiscard]] virtual base::Buffer memory(std::size_t bytes) = 0;
  virtual void all_reduce(std::span<double> values, Reduce reduce) = 0;
  virtual void broadcast(std::span<std::byte> bytes, int root_process) = 0;
  /// all [processes() * mine.size()]; `mine` may lie inside it, at its own place.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  virtual void barrier() = 0;

  /// Tells all processes that this one has failed; whatever waits here is woken. The kind becomes the exit
  /// code everywhere.
  virtual void fail(const std::string& reason, base::ErrorKind kind) = 0;
  /// Calls `told(reason)` when another process has failed, from a thread of this object; an empty function
  /// ends that. After it returns the former one is not being called.
  virtual void on_failure(std::function<void(const std::string&)> told) = 0;

  /// Where this process is, for others to name if it is lost: step and phase of its first rank.
  virtual void at(std::int64_t step, const char* phase) = 0;
  /// That this process's other ranks wait for one of them, and where that one is; nullopt: they do not.
  virtual void held_up_by(const std::optional<RankStatus>& rank) = 0;
  [[nodiscard]] virtual Traffic traffic() const = 0;  ///< of this process, both channels
};

}  // namespace paceline::comm

#pragma once

/// Messages between processes: the interface to a message-passing library (MPI, gloo), on which
/// process_group.h builds the collectives. Each library is one implementation, in a module of its own.
///
/// Threads   one caller at a time per channel; two threads may use two channels at once
/// Lifetime  destroyed last. The destructor shuts the library down in this process, and waits for nobody once
///           give_up() was called

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace paceline::comm {

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

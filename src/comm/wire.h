#pragma once

/// Messages between processes: all that a message-passing library (MPI) must offer so that processes.h can
/// build the collectives on it. A library is one class of this interface, in a module of its own.
///
/// Threads  each channel has one caller at a time; two threads may use two channels at once
/// Lifetime the last to be destroyed; destroying it ends the library in this process, and waits for no one
///          once give_up() was called

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

/// Messages of one channel never meet those of the other.
enum class Channel { reductions, exchanges };

class Wire {
 public:
  virtual ~Wire() = default;
  [[nodiscard]] virtual int process() const = 0;
  [[nodiscard]] virtual int processes() const = 0;
  [[nodiscard]] virtual std::string name() const = 0;     ///< "mpi"
  [[nodiscard]] virtual std::string library() const = 0;  ///< "Open MPI 4.1.4"

  /// Sends and receives all of these, in any order, and returns when every byte has arrived and all memory
  /// may be used again. Messages between two processes arrive in the order sent. `keep_waiting` is asked now
  /// and then while nothing arrives; when it says no, swap returns at once.
  ///
  /// Returns  empty when all is done; else the processes that were still waited for. The memory must then
  ///          stay alive as long as this object: the library may know of it
  /// Errors   Error(comm): the library failed, or a message was longer than the place for it
  [[nodiscard]] virtual std::vector<int> swap(Channel channel, std::span<const Send> sends,
                                              std::span<const Receive> receives,
                                              const std::function<bool()>& keep_waiting) = 0;

  /// Peers are lost: from now on nothing is waited for, and the library is left without a farewell.
  virtual void give_up() = 0;
};

}  // namespace paceline::comm

#pragma once

/// Memory that processes of one host share, and how one of them tells the others that something in it is
/// ready.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace paceline::comm {

/// A block of memory under a name that other processes open. Zero at first; all of it is really there, so
/// touching it never ends a process.
///
/// Lifetime goes with the last process that has it open; the name goes with remove_name() or the creator
class SharedMemory {
 public:
  /// Nothing where the system has no room for it (/dev/shm of a container may be small).
  [[nodiscard]] static std::optional<SharedMemory> create(std::size_t bytes);
  /// Nothing where there is no such name: a process of another host.
  [[nodiscard]] static std::optional<SharedMemory> open(const std::string& name, std::size_t bytes);
  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  /// Once all have it open: whatever happens later, nothing is left behind.
  void remove_name();

 private:
  SharedMemory(std::string name, std::span<std::byte> bytes, bool owns_name)
      : name_(std::move(name)), bytes_(bytes), owns_name_(owns_name) {}
  [[nodiscard]] static std::optional<SharedMemory> map(const std::string& name, int descriptor,
                                                       std::size_t bytes, bool owns_name);
  std::string name_;
  std::span<std::byte> bytes_;
  bool owns_name_ = false;
};

/// A count in shared memory that one process raises and any number wait for. It may wrap around: two counts
/// compared are never 2^31 apart. What was written before raise() is seen after wait().
struct alignas(64) Signal {
  std::atomic<std::uint32_t> count;
  std::atomic<std::uint32_t> sleepers;

  void raise(std::uint32_t to);
  [[nodiscard]] bool has(std::uint32_t target) const {
    return static_cast<std::int32_t>(count.load(std::memory_order_acquire) - target) >= 0;
  }
};

/// How often a thread looks, and then yields its core, before it sleeps until it is woken.
struct SpinLimits {
  int looks = 0;
  int yields = 0;
};

/// Waits until `signal` has reached `target`; false when `keep_waiting`, asked some times a second, says no.
[[nodiscard]] bool wait(Signal& signal, std::uint32_t target, SpinLimits limits,
                        const std::function<bool()>& keep_waiting);

}  // namespace paceline::comm

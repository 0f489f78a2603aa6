#pragma once

/// Memory shared by processes of one host, and signals between them.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace paceline::comm {

/// A named block of memory that other processes can open. Initially zero. All pages are allocated at once, so
/// touching them cannot fail later.
///
/// Lifetime  freed with the last process that has it open; its name with remove_name() or the creator
class SharedMemory {
 public:
  /// Returns nothing if the system has no room for it (/dev/shm of a container may be small).
  [[nodiscard]] static std::optional<SharedMemory> create(std::size_t bytes);
  /// Returns nothing if there is no such name, as for a process of another host.
  [[nodiscard]] static std::optional<SharedMemory> open(const std::string& name, std::size_t bytes);
  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept { *this = std::move(other); }
  SharedMemory& operator=(SharedMemory&& other) noexcept;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  /// Call it once all have opened the block: then nothing is left behind, whatever happens.
  void remove_name();

 private:
  explicit SharedMemory(std::string name) : name_(std::move(name)) {}
  [[nodiscard]] bool map(int descriptor, std::size_t bytes);
  std::string name_;
  std::span<std::byte> bytes_;
  bool owns_name_ = false;
};

/// A counter in shared memory that one process raises and others wait for. It may wrap around: counts that
/// are compared are never 2^31 apart. Memory written before raise() is visible after wait().
struct alignas(64) Signal {
  std::atomic<std::uint32_t> count;
  std::atomic<std::uint32_t> sleepers;

  void raise(std::uint32_t to);
  [[nodiscard]] bool has(std::uint32_t target) const {
    return static_cast<std::int32_t>(count.load(std::memory_order_acquire) - target) >= 0;
  }
};

/// How often a waiting thread checks, and then yields its core, before it sleeps until it is woken.
struct SpinLimits {
  int looks = 0;
  int yields = 0;
};

/// Waits until `signal` has reached `target`. Returns false when `keep_waiting`, called several times a
/// second, returns false.
[[nodiscard]] bool wait(Signal& signal, std::uint32_t target, SpinLimits limits,
                        const std::function<bool()>& keep_waiting);

}  // namespace paceline::comm

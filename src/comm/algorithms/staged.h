#pragma once

/// Collectives between processes of one host over shared memory. staged.cc explains them; docs/collectives.md
/// has steps and bytes of every algorithm.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "comm/algorithms/direct.h"
#include "comm/algorithms/exchange.h"
#include "comm/shared_memory.h"

namespace paceline::comm {

/// One stream of collectives over the same slots. Every process makes the same calls in the same order.
///
/// Threads  one at a time
class Staged {
 public:
  /// Bytes of shared memory (initially zero) that `processes` need with blocks of `block_bytes`.
  [[nodiscard]] static std::size_t room(int processes, std::size_t block_bytes);
  Staged(std::span<std::byte> room, int process, int processes, std::size_t block_bytes, SpinLimits limits);

  /// Each function returns false when `keep_waiting` returned false. Then missing() is the processes that
  /// were waited for, and the stream must not be used any more. Sums are in the tree's order
  /// (base/summation_tree.h); buffers may coincide as in comm/wire.h.
  using KeepWaiting = std::function<bool()>;
  /// The values may lie in `common` [process], one block per process that all can access (equal sizes; every
  /// process passes it). If the reduction is in place, at the same offset in every process, nothing is
  /// copied.
  [[nodiscard]] bool all_reduce(std::span<const float> src, std::span<float> dst,
                                const KeepWaiting& keep_waiting, std::span<const SharedMemory> common = {});
  [[nodiscard]] bool reduce_scatter(std::span<const float> src, std::span<float> dst,
                                    const KeepWaiting& keep_waiting);
  [[nodiscard]] bool all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                                const KeepWaiting& keep_waiting);
  [[nodiscard]] bool broadcast(std::span<std::byte> bytes, int root, const KeepWaiting& keep_waiting);
  [[nodiscard]] bool barrier(const KeepWaiting& keep_waiting);

  [[nodiscard]] std::vector<int> missing() const;
  /// Traffic of the last collective.
  [[nodiscard]] const Traffic& moved() const { return moved_; }

 private:
  enum class Slot { given, sums };
  [[nodiscard]] std::byte* slot(Slot which, int process, std::uint32_t number) const;
  [[nodiscard]] Signal& signal(Slot which, int process) const;

  [[nodiscard]] bool wait_for(Slot which, int process, std::uint32_t target);
  [[nodiscard]] bool wait_for_all(Slot which, std::uint32_t target);
  [[nodiscard]] bool wait_for_free_slot(std::uint32_t number);
  void put(Slot which, std::uint32_t number, std::size_t offset, std::span<const std::byte> bytes);
  void raise(Slot which, std::uint32_t number);
  void begin(const KeepWaiting& keep_waiting);

  [[nodiscard]] bool small(std::span<const float> src, std::span<float> dst);
  [[nodiscard]] bool staged(std::span<const float> src, std::span<float> dst);
  void reduce_in_place(std::span<const SharedMemory> common, std::size_t place, std::size_t count);
  [[nodiscard]] bool give(std::span<const float> src, Segment block, std::uint32_t number);
  [[nodiscard]] bool add_up(std::span<const float> src, std::span<float> dst, Segment block,
                            std::uint32_t number);
  [[nodiscard]] bool take(std::span<float> dst, Segment block, std::uint32_t number);
  [[nodiscard]] Segment segment(Segment block, int owner) const;

  std::span<std::byte> room_;
  int process_, processes_;
  std::size_t block_bytes_;
  SpinLimits limits_;
  std::uint32_t next_ = 0;  ///< number of the next block, the same in every process
  const KeepWaiting* keep_waiting_ = nullptr;
  std::vector<int> others_;
  std::vector<const float*> parts_;
  std::vector<std::uint32_t> given_;  ///< [process]: blocks known to have been given
  Slot waited_for_ = Slot::given;
  std::uint32_t waited_until_ = 0;
  Traffic moved_;
};

}  // namespace paceline::comm

#pragma once

/// The all-reduce between processes that can only send messages. exchange.cc explains it; docs/collectives.md
/// has steps and bytes of every algorithm.

#include <cstddef>
#include <functional>
#include <span>

#include "base/buffer.h"
#include "comm/communicator.h"
#include "comm/wire.h"

namespace paceline::comm {

/// Sends and receives one round of messages on its channel, or throws. The algorithms below are built on it.
using Round = std::function<void(std::span<const Send>, std::span<const Receive>)>;

/// Buffer for received data before it is summed. Grows to the largest call and keeps that size.
class ExchangeRoom {
 public:
  /// `count` parts of `bytes` each. Earlier contents are lost.
  [[nodiscard]] std::span<std::byte> take(std::size_t count, std::size_t bytes);

 private:
  base::Buffer buffer_;
};

/// The format in which floats are sent. bf16 halves the bytes: each process's part is rounded once before it
/// is summed (in float), and the sum is rounded once before it is sent back. The owner rounds its sum too, so
/// all processes end with the same bits.
enum class WireFormat { fp32, bf16 };

/// Sums `src` over `processes` in the tree's order (base/summation_tree.h) into every process's `dst`, which
/// may be `src`. All end with the same bits.
///
/// Cost     up to kExchangeSmall bytes: 1 round, (P-1) X bytes, always fp32. More: 1 round per block and one
///          more, 2 (P-1)/P X bytes; half of that as bf16
Traffic exchange_all_reduce(std::span<const float> src, std::span<float> dst, int process, int processes,
                            ExchangeRoom& room, const Round& round,
                            WireFormat wire_format = WireFormat::fp32);

/// The same sum, but process p gets only part p: `src` [processes * dst.size()]; `dst` may be that part of
/// `src`.
///
/// Cost     1 round per block, (P-1)/P |src| bytes, as fp32
Traffic exchange_reduce_scatter(std::span<const float> src, std::span<float> dst, int process, int processes,
                                ExchangeRoom& room, const Round& round);

/// Gathers every process's `mine` into `all`, in the order of processes. `mine` may be its own part of `all`.
///
/// Cost     1 round, (P-1) |mine| bytes
Traffic exchange_all_gather(std::span<const std::byte> mine, std::span<std::byte> all, int process,
                            int processes, const Round& round);

inline constexpr std::size_t kExchangeSmall = 8192;                  ///< bytes
inline constexpr std::size_t kExchangeBlock = std::size_t{1} << 20;  ///< bytes

}  // namespace paceline::comm

#pragma once

/// The all-reduce between processes that can only send messages. The essay is in exchange.cc; steps and bytes
/// of every algorithm are in docs/collectives.md.

#include <cstddef>
#include <functional>
#include <span>

#include "base/buffer.h"
#include "comm/wire.h"

namespace paceline::comm {

/// Carries out one round of messages of its channel, or throws: what the algorithms below are written with.
using Round = std::function<void(std::span<const Send>, std::span<const Receive>)>;

/// What a process gave to others and got from them.
struct Moved {
  std::int64_t rounds = 0;
  std::int64_t bytes_sent = 0;
  std::int64_t bytes_received = 0;
};

/// Room for what comes in before it is summed. Grows to the largest call and stays.
class ExchangeRoom {
 public:
  /// `count` parts of `bytes` each; the contents of earlier parts are lost.
  [[nodiscard]] std::span<std::byte> take(std::size_t count, std::size_t bytes);

 private:
  base::Buffer buffer_;
};

/// What a float travels as. bf16 halves the bytes: each process's part is rounded once on its way to be
/// summed (in float), and the sum once on its way back; the sum is rounded at its owner too, so all still end
/// with the same bits.
enum class WireFormat { fp32, bf16 };

/// Sums `src` over `processes` in the tree's order (base/summation_tree.h) into every process's `dst`, which
/// may be `src`: all end with the same bits.
///
/// Cost     at most kExchangeSmall bytes: 1 round, (P-1) X bytes; more: 1 round a block and one besides,
///          2 (P-1)/P X bytes, half of that as bf16. What is small always travels as fp32
Moved exchange_all_reduce(std::span<const float> src, std::span<float> dst, int process, int processes,
                          ExchangeRoom& room, const Round& round, WireFormat wire_format = WireFormat::fp32);

/// The same sum, of which process p gets part p: `src` [processes * dst.size()]; `dst` may be that part of
/// it.
///
/// Cost     1 round a block, (P-1)/P |src| bytes, as fp32
Moved exchange_reduce_scatter(std::span<const float> src, std::span<float> dst, int process, int processes,
                              ExchangeRoom& room, const Round& round);

/// Every process's `mine`, in the order of processes. `mine` may lie in `all` at its own place.
/// Cost     1 round, (P-1) |mine| bytes
Moved exchange_all_gather(std::span<const std::byte> mine, std::span<std::byte> all, int process,
                          int processes, const Round& round);

inline constexpr std::size_t kExchangeSmall = 8192;                  ///< bytes
inline constexpr std::size_t kExchangeBlock = std::size_t{1} << 20;  ///< bytes

}  // namespace paceline::comm

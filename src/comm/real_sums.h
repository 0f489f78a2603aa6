#pragma once

/// Says whether the real sums of ranks of one process are small beside the time of the link that is emulated
/// for them. Only then do many ranks on few cores take the time of that link.

#include <cstdint>
#include <span>
#include <string>

#include "comm/emulate.h"

namespace paceline::comm {

/// What this process takes to sum.
struct SumSpeed {
  int ranks = 0;
  std::int64_t bytes = 0;  ///< of each rank
  double processor_s = 0;  ///< of all threads, for one all-reduce
  /// The same for others: proportional to the bytes and to the ranks that are added to the first.
  [[nodiscard]] double seconds(int of_ranks, double of_bytes) const;
};

/// Times real all-reduces of `bytes`.
///
/// Cost     four all-reduces, and ranks * bytes of memory meanwhile
[[nodiscard]] SumSpeed measure_sums(int ranks, std::int64_t bytes);

/// The emulated link must take at least this many times as long as the processors for the real sum.
inline constexpr double kLeastShareOfLink = 3;

/// A sentence with what was measured, for the record.
///
/// Errors   Error(usage): the link is too fast for `ranks` ranks and buckets of these bytes; with the largest
///          number of ranks and the largest bucket that fit
[[nodiscard]] std::string require_slow_link(const EmulatedLink& link, int ranks,
                                            std::span<const std::int64_t> bucket_bytes,
                                            const SumSpeed& speed);

}  // namespace paceline::comm

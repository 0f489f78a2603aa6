#pragma once

/// A HostRuntime that runs streams, and the threads of kernels, in another of the orders that events allow.
/// So tests show that no order changes a bit, and that each wait is needed.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/rng.h"
#include "engine/cuda/runtime/host_runtime.h"

namespace paceline::engine::cuda {

/// Which of the streams that are not waiting runs next.
enum class StreamOrder {
  as_posted,    ///< the oldest item first, like a device with one queue
  first_first,  ///< the stream made first, until it waits or is empty
  last_first,   ///< the stream made last, until it waits or is empty
  random,       ///< a random stream, for a random number of items
};

struct HostRuntimeOptions {
  StreamOrder order = StreamOrder::as_posted;
  std::uint64_t seed = 0;  ///< of random
};

/// The same options and calls give the same order.
class OrderedRuntime : public HostRuntime {
 public:
  explicit OrderedRuntime(const HostRuntimeOptions& options = {})
      : options_(options),
        rng_(options.seed, base::Purpose::test),
        // With some seeds streams alternate item by item; with others one stream gets far ahead of another,
        // which reveals most mistakes.
        longest_burst_(1u << rng_.below(10)) {}

  [[nodiscard]] std::byte* allocate(std::size_t bytes) override {
    allocated_bytes_ += static_cast<std::int64_t>(bytes);
    return HostRuntime::allocate(bytes);
  }
  [[nodiscard]] std::byte* allocate_pinned(std::size_t bytes) override {
    allocated_bytes_ += static_cast<std::int64_t>(bytes);
    return HostRuntime::allocate_pinned(bytes);
  }
  /// The sum over all blocks, without guard zones.
  [[nodiscard]] std::int64_t allocated_bytes() const { return allocated_bytes_; }
  /// The number of items that were enqueued and have not run.
  [[nodiscard]] std::size_t queued() const {
    std::size_t items = 0;
    for (const auto& stream : streams_) items += stream.size();
    return items;
  }

 protected:
  [[nodiscard]] int choose(std::span<const int> ready) override {
    switch (options_.order) {
      case StreamOrder::as_posted:
        return HostRuntime::choose(ready);
      case StreamOrder::first_first:
        return ready.front();
      case StreamOrder::last_first:
        return ready.back();
      case StreamOrder::random:
        break;
    }
    if (burst_ == 0 || std::ranges::find(ready, burst_stream_) == ready.end()) {
      burst_stream_ = ready[rng_.below(static_cast<std::uint32_t>(ready.size()))];
      burst_ = 1 + rng_.below(longest_burst_);
    }
    --burst_;
    return burst_stream_;
  }
  [[nodiscard]] HostOrder order_of_threads() override {
    const bool is_descending = options_.order == StreamOrder::last_first ||
                               (options_.order == StreamOrder::random && rng_.below(2) == 1);
    return is_descending ? HostOrder::descending : HostOrder::ascending;
  }

 private:
  const HostRuntimeOptions options_;
  base::Rng rng_;
  std::uint32_t longest_burst_;  ///< random: the most items that a chosen stream runs
  int burst_stream_ = -1;        ///< the chosen stream; burst_ is how many items it may still run
  std::uint32_t burst_ = 0;
  std::int64_t allocated_bytes_ = 0;
};

}  // namespace paceline::engine::cuda

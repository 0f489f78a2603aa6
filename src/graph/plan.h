#pragma once

/// Memory planned before the first step: what each buffer is for, when it lives, where it lies.

#include <cstdint>
#include <string>
#include <vector>

namespace paceline::graph {

/// A buffer wanted from `first_use` to `last_use` (both inclusive; any integer time axis, usually: forward of
/// node i at i, backward of node i at 2*nodes-1-i).
struct BufferRequest {
  std::int64_t bytes = 0;
  int first_use = 0;
  int last_use = 0;
};

struct Placement {
  std::vector<std::int64_t> offsets;  ///< one a request, each a multiple of 64
  std::int64_t bytes = 0;             ///< of the arena that holds them all
};

/// Packs the requests into one arena: two that live at the same time never overlap.
///
/// Cost     O(n^2) for n requests; largest first, lowest fitting offset (within a few per cent of the bound
///          `peak_bytes` on the models of the zoo)
[[nodiscard]] Placement place(const std::vector<BufferRequest>& requests);

/// The largest sum of bytes alive at one time: what no placement can go below.
[[nodiscard]] std::int64_t peak_bytes(const std::vector<BufferRequest>& requests);

/// What a compiled model needs, by purpose and place; the sum of each place is what `sweep` compares with the
/// memory there is.
struct MemoryPlan {
  enum class Place { host, device };
  struct Line {
    std::string purpose;  ///< "activations", "weights", "gradients", "optimizer state", "workspace", ...
    std::int64_t bytes = 0;
    Place place = Place::host;  ///< device: in memory of a device with its own limit
  };
  std::vector<Line> lines;
  [[nodiscard]] std::int64_t total_bytes() const;
  [[nodiscard]] std::int64_t total_bytes(Place place) const;
};

}  // namespace paceline::graph

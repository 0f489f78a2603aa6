#pragma once

/// Handles of a Runtime's streams, events and captured sections: small numbers, valid for the runtime that
/// made them; and the levels of a sum in base/summation_tree.h as launches of kernels.

#include <cstddef>

#include "engine/cuda/kernels/kernel.h"

namespace paceline::engine::cuda {

// The kernels that add arrays in the tree of base/summation_tree.h.

/// Calls launch(kernel) for each level of the tree over `parts` arrays, the lowest level first. Arguments are
/// those of base::SideStream::tree_sum(). Launches nothing if `count` is 0.
///
/// Requires  parts >= 2
template <typename Launch>
void for_each_tree_level(float* first, int parts, std::size_t stride, std::size_t count, float* dst,
                         const Launch& launch) {
  if (count == 0) return;
  for (int distance = 1; distance < parts; distance *= 2)
    launch(ArrayTreeLevel{.first = first,
                          .dst = dst,
                          .stride = static_cast<std::int64_t>(stride),
                          .count = static_cast<std::int64_t>(count),
                          .parts = parts,
                          .distance = distance});
}

/// A queue of work that runs in order. Different streams run in any order that events allow.
struct Stream {
  int index = -1;
  bool operator==(const Stream&) const = default;
};

/// A mark in a stream, which another stream or the host can wait for.
struct Event {
  int index = -1;
  bool operator==(const Event&) const = default;
};

/// Work of one stream that was recorded once, to be started again by one call.
struct CapturedSection {
  int index = -1;
  bool operator==(const CapturedSection&) const = default;
};

}  // namespace paceline::engine::cuda

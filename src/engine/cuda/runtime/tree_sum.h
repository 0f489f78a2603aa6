#pragma once

/// The kernels that add arrays in the tree of base/summation_tree.h.

#include <cstddef>

#include "engine/cuda/kernels/array.h"

namespace paceline::engine::cuda {

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

}  // namespace paceline::engine::cuda

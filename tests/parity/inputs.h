#pragma once

/// What a parity job trains with, as functions of its seed alone: no PyTorch is needed to have it again.
///
/// Only sums, products, divisions and square roots of double are used, whose bits are the same on every
/// machine; so a curve that PyTorch computed elsewhere in fp64 is that of these inputs.

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace paceline::parity {

/// The initial values of parameter `index` of the graph: as PyTorch draws them for convolutions and dense
/// layers (uniform within 1 / sqrt(fan-in)); for batch norms away from 1 and 0, which would hide a mix-up.
[[nodiscard]] std::vector<float> initial_values(const graph::Graph& graph, int index, std::uint64_t seed);

struct Batch {
  std::vector<float> images;  ///< [N, H, W, C]
  std::vector<std::int32_t> labels;
};

/// Random images: a pattern for each class under noise as strong, so that losses really fall. `redraws` [N]
/// says how often each image was drawn again, with the same label.
[[nodiscard]] Batch batch_of(const graph::Shape& shape, int classes, int step,
                             const std::vector<int>& redraws, std::uint64_t seed);

/// Dot products of a tensor with this many vectors of +1 and -1. The mean square of those of a difference of
/// two tensors is about the square of its Euclidean norm, whatever differs.
inline constexpr int kProjections = 8;

/// What a tensor is compared by.
struct Digest {
  double norm = 0;
  double projections[kProjections] = {};
};
template <typename T>
[[nodiscard]] Digest digest_of(const T* values, std::int64_t count);

}  // namespace paceline::parity

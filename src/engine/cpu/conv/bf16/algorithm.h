#pragma once

/// A Bf16Algorithm is one way to compute a convolution with products of bf16 tiles: a row of the table in
/// bf16/algorithms.cc. It runs on any unit that has the kernels that it needs.

#include <memory>
#include <optional>
#include <string>

#include "engine/cpu/conv/kernel.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu {

struct Bf16Algorithm {
  const char* name;
  /// Why it cannot compute the shape with these kernels, as the end of a sentence; empty if it can. Must not
  /// depend on the number of samples, so that all chunks of a batch add in the same order.
  std::optional<std::string> (*refusal)(const ConvShape& shape, Direction direction,
                                        const tiles::TileKernels& kernels);
  /// Whether it is usually the fastest algorithm on AMX, among the rows that can compute the shape.
  bool (*prefers)(const ConvShape& shape, Direction direction);
  const char* preference;  ///< the condition that prefers() checks, as the end of a sentence
  /// Number of samples in a chunk of the batch.
  int (*chunk)(const ConvShape& batch, Direction direction);
  /// As in ConvAlgorithm; null for directions that refusal() refuses. `kernels` must outlive the result.
  std::unique_ptr<WeightReader> (*make_reader)(const ConvShape& chunk, Direction direction,
                                               const tiles::TileKernels& kernels) = nullptr;
  std::unique_ptr<WgradKernel> (*make_wgrad)(const ConvShape& chunk,
                                             const tiles::TileKernels& kernels) = nullptr;
};

/// Whether the shape fills the tiles well enough for AMX to be faster than oneDNN: at least 64 channels and
/// 16 samples, and a small image, a stride or backward weights. Every row prefers these shapes; some prefer
/// others too.
[[nodiscard]] bool fills_tiles(const ConvShape& shape, Direction direction);
constexpr int kPreferredChannels = 64;

/// Samples in a chunk, in whole blocks of 32, so that tiles of weights are read half as often. Half blocks if
/// there would be few chunks.
[[nodiscard]] int whole_block_chunk(const ConvShape& batch, Direction direction);

/// Samples in a chunk of backward weights. Each chunk writes its own copy of the gradient, which is later
/// read again and added up. If the copy exceeds a near cache, chunks get twice the usual pixels, and there
/// are at most four.
[[nodiscard]] int chunk_of_far_gradient(const ConvShape& batch);

}  // namespace paceline::engine::cpu

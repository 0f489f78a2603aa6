#pragma once

/// One way to multiply bf16 tiles: a row of the table in algorithms.cc, for any unit that has the kernels.

#include <memory>
#include <optional>
#include <string>

#include "engine/cpu/conv/kernel.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu {

struct Bf16Algorithm {
  const char* name;
  /// Why it cannot compute the shape with these kernels, as the end of a sentence; empty: it can. The samples
  /// must not decide: the chunks of a batch have one order of sums.
  std::optional<std::string> (*refusal)(const ConvShape& shape, Direction direction,
                                        const tiles::TileKernels& kernels);
  /// Whether it is usually the fastest with AMX, among the rows that can compute the shape.
  bool (*prefers)(const ConvShape& shape, Direction direction);
  const char* preference;  ///< what prefers() asks for, as the end of a sentence
  /// Samples of a chunk of the batch.
  int (*chunk)(const ConvShape& batch, Direction direction);
  /// As in ConvAlgorithm; null where refusal() refuses. `kernels` outlives the result.
  std::unique_ptr<WeightReader> (*make_reader)(const ConvShape& chunk, Direction direction,
                                               const tiles::TileKernels& kernels) = nullptr;
  std::unique_ptr<WgradKernel> (*make_wgrad)(const ConvShape& chunk,
                                             const tiles::TileKernels& kernels) = nullptr;
};

/// With 64 channels and 16 samples, small images, strides and gradients of weights fill the tiles well enough
/// for AMX to be faster by them than by oneDNN: what every row prefers, beside its own.
[[nodiscard]] bool fills_tiles(const ConvShape& shape, Direction direction);
constexpr int kPreferredChannels = 64;

/// Chunks of whole blocks of samples, whose tiles are read half as often; of half blocks where there would be
/// few chunks.
[[nodiscard]] int whole_block_chunk(const ConvShape& batch, Direction direction);

/// Backward weights: a copy of many weights is what a chunk of the gradient has to wait for. It is fetched,
/// written back and read again to be summed up. Twice the usual pixels then, and no more than four copies.
[[nodiscard]] int chunk_of_far_gradient(const ConvShape& batch);

}  // namespace paceline::engine::cpu

#pragma once

/// The table of bf16 algorithms. conv/algorithms.h has a row for each of them on each unit.

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "engine/cpu/conv/kernel.h"
#include "engine/cpu/conv/problem.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu {

// Backward weights by bf16 tiles whose inner dimension is the batch. wgrad_batch_k.cc explains the method;
// wgrad_im2col.cc uses the kernel too.

/// `kernels` must outlive the result.
[[nodiscard]] std::unique_ptr<WgradKernel> make_wgrad_batch_k_kernel(const ConvShape& shape,
                                                                     const tiles::TileKernels& kernels);

// The condition of packed_images.cc, which computes forward and backward data of images with short rows, and
// backward data with stride 2, by bf16 tiles.

/// Number of images that are packed side by side so that their rows fill tiles of 16 pixels; 0 if the shape
/// cannot be computed this way. It can if 2 or 4 images are enough (backward data with stride 2: also 1),
/// channels are whole blocks of 32, results are bf16, and weights and a group of images fit a near cache.
/// Stride 2 also needs padding 1 and an even width.
[[nodiscard]] int images_side_by_side(const ConvShape& shape, Direction direction);

// A Bf16Algorithm is one way to compute a convolution with products of bf16 tiles: a row of the table in
// bf16/algorithms.cc. It runs on any unit that has the kernels that it needs.

struct Bf16Algorithm {
  const char* name;
  /// What refusal() says of the directions that it has kernels for; null: it computes any shape.
  std::optional<std::string> (*limit)(const ConvShape& shape, Direction direction,
                                      const tiles::TileKernels& kernels) = nullptr;
  /// Whether it is usually the fastest algorithm on AMX, among the rows that can compute the shape.
  bool (*prefers)(const ConvShape& shape, Direction direction);
  const char* preference;  ///< the condition that prefers() checks, as the end of a sentence
  /// Number of samples in a chunk of the batch.
  int (*chunk)(const ConvShape& batch, Direction direction);
  /// As in ConvAlgorithm; null: it does not compute these directions. `kernels` must outlive the result.
  std::unique_ptr<WeightReader> (*make_reader)(const ConvShape& chunk, Direction direction,
                                               const tiles::TileKernels& kernels) = nullptr;
  std::unique_ptr<WgradKernel> (*make_wgrad)(const ConvShape& chunk,
                                             const tiles::TileKernels& kernels) = nullptr;

  /// Why it cannot compute the shape with these kernels, as the end of a sentence; empty if it can. Does not
  /// depend on the number of samples, so that all chunks of a batch add in the same order.
  [[nodiscard]] std::optional<std::string> refusal(const ConvShape& shape, Direction direction,
                                                   const tiles::TileKernels& kernels) const;
};

/// Bf16Algorithm::make_reader and make_wgrad of a class of kernels.
template <typename Kernel>
std::unique_ptr<WeightReader> make_reader_of(const ConvShape& chunk, Direction direction,
                                             const tiles::TileKernels& kernels) {
  return std::make_unique<Kernel>(chunk, direction, kernels);
}
template <typename Kernel>
std::unique_ptr<WgradKernel> make_wgrad_of(const ConvShape& chunk, const tiles::TileKernels& kernels) {
  return std::make_unique<Kernel>(chunk, kernels);
}

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

/// All bf16 algorithms, the preferred ones first.
[[nodiscard]] std::span<const Bf16Algorithm* const> bf16_algorithms();

/// The first one that can compute the shape. Every shape has one.
[[nodiscard]] const Bf16Algorithm& usual_bf16_algorithm(const ConvShape& shape, Direction direction,
                                                        const tiles::TileKernels& kernels);

}  // namespace paceline::engine::cpu

#pragma once

/// Decisions of this engine that tests and benchmarks may override.

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/cpu/kernels/isa.h"

namespace paceline::engine::cpu {

// How activations and their gradients are stored.

enum class Storage { f32, bf16 };
[[nodiscard]] constexpr std::int64_t bytes_of(Storage storage) { return storage == Storage::f32 ? 4 : 2; }

struct ConvAlgorithm;  // conv/algorithms.h

/// Overrides what compile() decides by itself. Changes results by rounding only.
struct Tuning {
  std::optional<Isa> isa;  ///< of this project's kernels; default: the best one of this machine
  /// bf16 only: whether convolutions and dense layers work on stored bf16 values. If not, they convert blocks
  /// of samples to float and compute in float; without bf16 units this is faster (below AVX-512 oneDNN can do
  /// nothing else). Default: on with bf16 units, and for layers that Winograd computes.
  std::optional<bool> bf16_products;
  /// If bf16_products is off: the most bytes of float copies (source and destination) in a block.
  std::int64_t block_bytes = std::int64_t{8} << 20;
  /// Each convolution and dense layer takes the first of these that can compute it. If none can, and by
  /// default, CompileOptions::algorithms decides.
  std::vector<const ConvAlgorithm*> algorithms;
  /// Samples in a chunk of convolutions and dense layers; default: by shape. Changes the rounding of sums.
  std::optional<int> chunk_samples;
  /// Whether convolutions compute a batch norm's sums over the rows that they write, where they can. Off: the
  /// batch norm has passes of its own.
  bool fuses_batch_norm_stats = true;
  bool poison = false;  ///< fill shared buffers with NaN before each pass, to find reads of unwritten memory
};

}  // namespace paceline::engine::cpu

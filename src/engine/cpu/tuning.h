#pragma once

/// What the engine decides for itself when it compiles a graph, and tests and benchmarks may override.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/cpu/kernels/isa.h"

namespace paceline::engine::cpu {

struct ConvAlgorithm;  // conv/algorithm.h

/// What compile() decides by itself, to be overridden by tests and benchmarks. Results differ in
/// rounding only.
struct Tuning {
  std::optional<Isa> isa;  ///< of our own kernels; the machine's best
  /// bf16 only: whether products read and write bf16 themselves. Off: blocks of samples are converted to
  /// float and multiplied in float, which is faster on machines without bf16 units (and oneDNN's only way
  /// below AVX-512). By default off there, but on for what Winograd wants to compute.
  std::optional<bool> bf16_products;
  /// bf16 without bf16 products: bytes of float copies (source and destination) that a block may have.
  std::int64_t block_bytes = std::int64_t{8} << 20;
  /// Every convolution and dense layer takes the first of these that can compute it; where none can, and by
  /// default, what CompileOptions::algorithms says.
  std::vector<const ConvAlgorithm*> algorithms;
  /// Samples of a chunk of convolutions and dense layers; by default what the shape wants. Changes sums'
  /// rounding.
  std::optional<int> chunk_samples;
  /// Batch norm's sums over rows are taken by the products that write the rows, where they can; off: in
  /// passes of their own.
  bool fuses_batch_norm_stats = true;
  bool poison = false;  ///< fill every shared buffer with NaN before each pass: what is read was then written
};

}  // namespace paceline::engine::cpu

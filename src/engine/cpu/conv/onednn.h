#pragma once

/// Convolutions and dense layers by oneDNN, which can compute any shape.

#include <memory>
#include <optional>
#include <string>

#include "engine/cpu/conv/kernel.h"

namespace paceline::engine::cpu {

/// How oneDNN multiplies bf16 on this machine (and within ONEDNN_MAX_CPU_ISA).
enum class Bf16Products {
  none,         ///< below AVX-512: not at all
  in_software,  ///< converted in registers, slower than fp32
  in_hardware,  ///< AVX512-BF16, AMX
};
[[nodiscard]] Bf16Products bf16_products_here();

/// oneDNN generates the kernels of its matrix product at its first call: about 6 MB that a memory plan made
/// before it would not know of. Whoever makes a kernel that takes it calls this, so that they are there.
///
/// Cost     45 ms at the first call
/// Threads  any
void generate_matrix_product();

/// Why oneDNN cannot compute `shape` on this machine; empty: it can.
[[nodiscard]] std::optional<std::string> refusal_of_onednn(const ConvShape& shape);

/// Forward or backward data. `like`: another kernel of the same shape but for the samples, whose packed
/// weights this one is to read; or null.
///
/// Errors   Error(device) when oneDNN has no kernel for it
[[nodiscard]] std::unique_ptr<WeightReader> make_onednn_reader(const ConvShape& shape, Direction direction,
                                                               const WeightReader* like);

}  // namespace paceline::engine::cpu

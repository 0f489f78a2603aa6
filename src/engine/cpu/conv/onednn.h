#pragma once

/// Convolutions and dense layers computed by oneDNN, which can compute any shape.

#include <memory>
#include <optional>
#include <string>

#include "engine/cpu/conv/kernel.h"

namespace paceline::engine::cpu {

/// How oneDNN multiplies bf16 on this machine (and within ONEDNN_MAX_CPU_ISA).
enum class Bf16Products {
  none,         ///< not at all: below AVX-512
  in_software,  ///< it converts in registers, slower than fp32
  in_hardware,  ///< AVX512-BF16, AMX
};
[[nodiscard]] Bf16Products bf16_products_here();

/// Makes oneDNN generate the kernels of its matrix product. Otherwise it does so at the first call, and a
/// memory plan made before would miss their 6 MB. Call this when you make a kernel that uses the matrix
/// product.
///
/// Cost     45 ms at the first call
/// Threads  any
void generate_matrix_product();

/// Why oneDNN cannot compute `shape` on this machine; empty if it can.
[[nodiscard]] std::optional<std::string> refusal_of_onednn(const ConvShape& shape);

/// Makes a kernel of forward or backward data. `like` is null or a kernel for another number of samples of
/// the same shape; the new kernel then reads the weights that `like` packs.
///
/// Errors   Error(device) when oneDNN has no kernel for it
[[nodiscard]] std::unique_ptr<WeightReader> make_onednn_reader(const ConvShape& shape, Direction direction,
                                                               const WeightReader* like);

}  // namespace paceline::engine::cpu

#pragma once

/// The table of bf16 algorithms. conv/algorithms.h has a row for each of them on each unit.

#include <span>

#include "engine/cpu/conv/bf16/algorithm.h"

namespace paceline::engine::cpu {

/// All bf16 algorithms, the preferred ones first.
[[nodiscard]] std::span<const Bf16Algorithm* const> bf16_algorithms();

/// The first one that can compute the shape. Every shape has one.
[[nodiscard]] const Bf16Algorithm& usual_bf16_algorithm(const ConvShape& shape, Direction direction,
                                                        const tiles::TileKernels& kernels);

}  // namespace paceline::engine::cpu

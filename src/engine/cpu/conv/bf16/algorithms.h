#pragma once

/// The table of bf16 algorithms. Each of them is a row of conv/algorithms.h for every unit.

#include <span>

#include "engine/cpu/conv/bf16/algorithm.h"

namespace paceline::engine::cpu {

/// In the order in which they are preferred: of those that can compute a shape the first is the usual one.
[[nodiscard]] std::span<const Bf16Algorithm* const> bf16_algorithms();

/// The usual one. Any shape has one.
[[nodiscard]] const Bf16Algorithm& usual_bf16_algorithm(const ConvShape& shape, Direction direction,
                                                        const tiles::TileKernels& kernels);

}  // namespace paceline::engine::cpu

#pragma once

/// Whether this machine's units for bf16 tiles may be used: present, allowed by the system, and right.

#include <optional>
#include <string>

#include "engine/cpu/conv/problem.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu::tiles {

/// Why `unit` cannot be used by this process; empty when it can. Found out once: the first call asks the
/// system for the tile registers, where the processor has them, and checks what the unit computes.
///
/// Threads  any
[[nodiscard]] std::optional<std::string> refusal_of(Unit unit);

/// Why `unit` cannot multiply the values of `shape`: they are no bf16, or the unit is not here. The unit is
/// asked about for bf16 only.
[[nodiscard]] std::optional<std::string> refusal_to_multiply(Unit unit, const ConvShape& shape);

/// What is wrong with `kernels`: the three products of a small convolution by them beside the emulated ones.
/// Empty when they agree. Some milliseconds.
[[nodiscard]] std::optional<std::string> trouble_with(const TileKernels& kernels);

}  // namespace paceline::engine::cpu::tiles

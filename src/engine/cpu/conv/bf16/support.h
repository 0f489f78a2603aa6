#pragma once

/// Whether this machine's units for bf16 tiles may be used: present, allowed by the system, and right.

#include <optional>
#include <string>

#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu::tiles {

/// Why `unit` cannot be used by this process; empty when it can. Found out once: the first call asks the
/// system for the tile registers, where the processor has them, and checks what the unit computes.
///
/// Threads  any
[[nodiscard]] std::optional<std::string> refusal_of(Unit unit);

/// What is wrong with `kernels`: the three products of a small convolution by them beside the emulated ones.
/// Empty when they agree. Some milliseconds.
[[nodiscard]] std::optional<std::string> trouble_with(const TileKernels& kernels);

}  // namespace paceline::engine::cpu::tiles

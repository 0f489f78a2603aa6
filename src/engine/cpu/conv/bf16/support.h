#pragma once

/// Whether this process can use a bf16 unit: the processor has it, the system allows it, and its results are
/// right.

#include <optional>
#include <string>

#include "engine/cpu/conv/problem.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu::tiles {

/// Why this process cannot use `unit`; empty if it can.
///
/// Cost     some milliseconds at the first call, which asks the system for the tile registers (AMX) and tests
///          the units; nothing later
/// Threads  any
[[nodiscard]] std::optional<std::string> refusal_of(Unit unit);

/// Why `unit` cannot multiply the values of `shape`: they are not bf16, or the unit cannot be used. Does not
/// touch the unit if the values are not bf16. Without a unit only the values count.
[[nodiscard]] std::optional<std::string> refusal_to_multiply(std::optional<Unit> unit,
                                                             const ConvShape& shape);

/// Tests `kernels` against plain sums on all directions of some small convolutions. Returns the first
/// difference; empty if they agree.
///
/// Cost     some milliseconds
[[nodiscard]] std::optional<std::string> trouble_with(const TileKernels& kernels);

}  // namespace paceline::engine::cpu::tiles

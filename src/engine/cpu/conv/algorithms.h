#pragma once

/// The table of convolution algorithms, and the rules that choose one for a problem.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cpu/conv/algorithm.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu {

/// All algorithms. The project's own come first; oneDNN, which can compute any problem, comes last.
///
/// Threads  any
[[nodiscard]] std::span<const ConvAlgorithm> conv_algorithms();

/// The row with this name; null if there is none.
[[nodiscard]] const ConvAlgorithm* find_algorithm(std::string_view name);

/// A row of each bf16 algorithm with `kernels`, which must outlive it; the preferred ones first. The rows
/// refuse what `unit` refuses; empty: the kernels need no unit, as those of tests.
[[nodiscard]] std::vector<ConvAlgorithm> rows_of(const tiles::TileKernels& kernels,
                                                 std::optional<tiles::Unit> unit);

/// The first of `algorithms` that can compute `problem`; null if none can.
[[nodiscard]] const ConvAlgorithm* first_that_can(std::span<const ConvAlgorithm* const> algorithms,
                                                  const ConvProblem& problem);

/// The algorithm that the rules choose: the first row that can compute `problem` and prefers it. The rules
/// come from measurements on a few machines (docs/decisions/cpu-layout.md, winograd.md, measured-kernels.md).
/// default_algorithm() (default_table.h) uses them where no table of measurements applies.
[[nodiscard]] const ConvAlgorithm& usual_algorithm(const ConvProblem& problem);

/// Lists all algorithms but `chosen` as "NAME TEXT; NAME TEXT"; `about` returns the text of each. If all rows
/// of a family have the same text, the list names the family once.
[[nodiscard]] std::string list_others(const ConvAlgorithm& chosen,
                                      const std::function<std::string(const ConvAlgorithm&)>& about);

/// One sentence that says why `chosen` was taken and not each of the others. `measured`: measured times chose
/// it, not the rules.
[[nodiscard]] std::string why_not_others(const ConvAlgorithm& chosen, const ConvProblem& problem,
                                         bool measured);

}  // namespace paceline::engine::cpu

#pragma once

/// The table of convolution algorithms, and which of them a problem takes.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cpu/conv/algorithm.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu {

/// All of them: own ones first, oneDNN, which can compute anything, last.
///
/// Threads  any
[[nodiscard]] std::span<const ConvAlgorithm> conv_algorithms();

/// The row of that name; null: there is none.
[[nodiscard]] const ConvAlgorithm* find_algorithm(std::string_view name);

/// The rows of the bf16 algorithms on `unit`, in the order in which they are preferred. Those of emulated
/// units stand in no other list: they are for tests.
[[nodiscard]] std::vector<const ConvAlgorithm*> bf16_algorithms_on(tiles::Unit unit);

/// The first of `algorithms` that can compute `problem`; null: none can.
[[nodiscard]] const ConvAlgorithm* first_that_can(std::span<const ConvAlgorithm* const> algorithms,
                                                  const ConvProblem& problem);

/// What the shape wants by rule, among those that can. The rules are measurements of a few machines
/// (docs/decisions/cpu-layout.md, winograd.md, measured-kernels.md); where default_table.h knows the kind of
/// processor, it is asked first.
[[nodiscard]] const ConvAlgorithm& usual_algorithm(const ConvProblem& problem);

/// "NAME TEXT; NAME TEXT" for all algorithms but `chosen`, where `about` gives each one's text. A unit of
/// which all rows have the same text is named once.
[[nodiscard]] std::string list_others(const ConvAlgorithm& chosen,
                                      const std::function<std::string(const ConvAlgorithm&)>& about);

/// One sentence: why `chosen` and not each of the others; `measured`: their times on this machine said so.
[[nodiscard]] std::string why_not_others(const ConvAlgorithm& chosen, const ConvProblem& problem,
                                         bool measured);

}  // namespace paceline::engine::cpu

#pragma once

/// Converts a graph's Conv2d and Dense layers to the padded ConvProblems that a device computes, and checks
/// and names ConvProblems.

#include <string>
#include <vector>

#include "engine/cuda/conv_problem.h"
#include "graph/graph.h"

namespace paceline::engine::cuda {

/// The convolution that computes `node` for `batch` samples. A Dense layer reads its input as one pixel of
/// height * width * padded channels.
///
/// Requires  batch >= 1; `node` is a Conv2d or Dense of `graph`
[[nodiscard]] ConvProblem conv_problem(const graph::Graph& graph, const graph::Node& node, int batch,
                                       Precision precision, ConvDirection direction);

/// The problems of all Conv2d and Dense nodes, in the order of the nodes, three directions each.
[[nodiscard]] std::vector<ConvProblem> conv_problems(const graph::Graph& graph, int batch,
                                                     Precision precision);

/// The problem's name, which records and caches hold: "backward data, bf16, 128x32x32x64 to 128x16x16x128,
/// kernel 3x3, stride 2, padding 1". Shapes are [N]x[H]x[W]x[C] of the forward pass. Fused problems end with
/// ", with statistics", ", with mask and sums" or ", with sum, mask and sums".
[[nodiscard]] std::string describe(const ConvProblem& problem);

/// The algorithm in `options.algorithms` for `problem`; empty if there is none, so that the default applies.
[[nodiscard]] std::string algorithm_for(const CompileOptions& options, const ConvProblem& problem);

/// Refuses a problem that no layer can have: sizes that are not positive, channels that are not padded, an
/// output size that does not follow from input, kernel, stride and padding.
///
/// Errors   Error(device) with problem, rule and value
void check(const ConvProblem& problem);

/// Refuses a problem whose operands differ in size from the engine's arrays. Without this check cuDNN would
/// compute a grouped convolution from a weight with too few channels.
///
/// Errors   Error(device) with problem, operand and both sizes
void check_operands(const ConvProblem& problem, std::int64_t src_elements, std::int64_t weight_elements,
                    std::int64_t dst_elements);

}  // namespace paceline::engine::cuda

#pragma once

/// Which convolution a layer is on the device: the shapes of graph::Conv2d and graph::Dense, padded.

#include <string>
#include <vector>

#include "engine/cuda/conv_problem.h"
#include "graph/graph.h"

namespace paceline::engine::cuda {

/// The convolution that computes `node`, a Conv2d or a Dense of `graph`, for `batch` samples. A Dense layer
/// reads its input as one pixel of height * width * padded channels.
/// Requires: batch >= 1, and the node is one of the two.
[[nodiscard]] ConvProblem conv_problem(const graph::Graph& graph, const graph::Node& node, int batch,
                                       Precision precision, ConvDirection direction);

/// Those of all Conv2d and Dense nodes, in the order of the nodes, three directions each.
[[nodiscard]] std::vector<ConvProblem> conv_problems(const graph::Graph& graph, int batch,
                                                     Precision precision);

/// "backward data, bf16, 128x32x32x64 to 128x16x16x128, kernel 3x3, stride 2, padding 1": shapes are
/// [N]x[H]x[W]x[C] of the forward pass. Behind it what else is computed: ", with statistics", ", with mask
/// and sums", ", with sum, mask and sums".
[[nodiscard]] std::string describe(const ConvProblem& problem);

/// The name of the algorithm that prepare() chose for it; empty: none, it follows from the shape alone.
[[nodiscard]] std::string algorithm_for(const CompileOptions& options, const ConvProblem& problem);

/// Refuses what no layer is: sizes that are not positive, channels that are not padded, an output whose size
/// does not follow from input, kernel, stride and padding.
///
/// Errors   Error(device) that names problem, rule and value
void check(const ConvProblem& problem);

/// Refuses a problem whose operands are not as large as what the engine has for them: a weight of half the
/// channels would pass for a grouped convolution.
///
/// Errors   Error(device) that names problem, operand and both sizes
void check_operands(const ConvProblem& problem, std::int64_t src_elements, std::int64_t weight_elements,
                    std::int64_t dst_elements);

}  // namespace paceline::engine::cuda

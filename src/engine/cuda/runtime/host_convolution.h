#pragma once

/// Convolutions on the processor, as plain loops. The host runtime uses them where a GPU would use cuDNN.
///
/// Layouts and storage are those of conv_problem.h. Multiplies and adds in float, and rounds the result once.
/// The order of additions depends on the shape and the algorithm alone; a sample's output does not depend on
/// the other samples.
///
/// Cost   5 to 10 GFLOP/s on one core, and memory for float copies of the operands

#include "engine/cuda/conv_problem.h"

namespace paceline::engine::cuda {

/// Two algorithms whose results differ in rounding, so that tests can tell which one ran.
enum class HostLoops {
  ascending,   ///< adds over channels (weight gradients: pixels) in increasing order
  descending,  ///< adds in decreasing order
};

/// Computes `problem` before it returns. Reads and writes exactly the operands' elements. The sums of fused
/// problems are added in double, from the stored (rounded) values, and rounded once.
void convolve_on_host(const ConvProblem& problem, const ConvOperands& operands,
                      HostLoops loops = HostLoops::ascending);

}  // namespace paceline::engine::cuda

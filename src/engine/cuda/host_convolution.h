#pragma once

/// Convolutions of the host runtime: the three directions as plain loops on the processor.
///
/// They take the layouts and storage of conv_problem.h and stand in for cuDNN where there is no GPU: inputs
/// in the storage type, products and sums in float, the result rounded once. The order of additions depends
/// on the shape alone; that of a sample's output not even on the other samples.
///
/// Cost   about 5 to 10 GFLOP/s on one core; float copies of the operands on top of them

#include "engine/cuda/conv_problem.h"

namespace paceline::engine::cuda {

/// Computes one direction at once. Reads and writes exactly the operands' elements.
void convolve_on_host(const ConvProblem& problem, const ConvOperands& operands);

}  // namespace paceline::engine::cuda

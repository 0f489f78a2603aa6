#pragma once

/// Convolutions of the host runtime: the three directions as plain loops on the processor.
///
/// They take the layouts and storage of conv_problem.h and stand in for cuDNN where there is no GPU: inputs
/// in the storage type, products and sums in float, the result rounded once. The order of additions depends
/// on the shape and the algorithm alone; that of a sample's output not even on the other samples.
///
/// Cost   about 5 to 10 GFLOP/s on one core; float copies of the operands on top of them

#include "engine/cuda/conv_problem.h"

namespace paceline::engine::cuda {

/// Two algorithms, which differ in bits: so tests see which one a run computes with.
enum class HostLoops {
  ascending,   ///< sums go over channels (of weights' gradients: pixels) in their order
  descending,  ///< ... in the opposite order
};

/// Computes one direction at once. Reads and writes exactly the operands' elements. Sums are of what is
/// stored, taken in double, rounded once.
void convolve_on_host(const ConvProblem& problem, const ConvOperands& operands,
                      HostLoops loops = HostLoops::ascending);

}  // namespace paceline::engine::cuda

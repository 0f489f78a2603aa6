#pragma once

/// Chooses the method of a product by timing all that can compute it.

#include "engine/cpu/conv/tuning_cache.h"

namespace paceline::engine::cpu {

/// Times a chunk of each method that can compute the product, on the calling thread, with what belongs to it
/// once an update (packing weights, joining gradients), and takes the fastest for the whole batch. The usual
/// method of the shape stays unless another one is clearly faster, so that chance decides nothing.
///
/// Cost     some milliseconds a method for a convolution of a ResNet; memory for a chunk of each, or 6 MB
/// Threads  any; a OneThread must be in force
[[nodiscard]] Method fastest_method(const ConvProblem& problem);

/// The seconds that it compares: of the whole batch, on one thread.
[[nodiscard]] double seconds_of_method(const ConvProblem& problem, Method method);

}  // namespace paceline::engine::cpu

#pragma once

/// Chooses the algorithm of a convolution by timing every algorithm that can compute it.

#include <vector>

#include "engine/cpu/conv/algorithms.h"

namespace paceline::engine::cpu {

/// Returns the fastest algorithm for the whole batch, estimated from the times of a few chunks on the calling
/// thread. The estimate includes packing the weights (once an update) and adding the gradients of chunks. The
/// default algorithm (default_table.h) wins unless another one is clearly faster, so that noise does not
/// change the choice.
///
/// Cost      some milliseconds for each algorithm for a convolution of a ResNet; memory for one chunk of
///           each, at least 6 MB
/// Requires  a OneThread (parallel.h) exists on the calling thread
/// Threads   any
[[nodiscard]] const ConvAlgorithm* autotune(const ConvProblem& problem);

/// What `measure` finds of each problem: on all cores at once, as crowded as training will be.
///
/// Threads  `measure` is called from several, each in a OneThread
using MeasureProblem = const ConvAlgorithm* (*)(const ConvProblem& problem);
[[nodiscard]] std::vector<const ConvAlgorithm*> side_by_side(const std::vector<ConvProblem>& problems,
                                                             MeasureProblem measure);

/// The seconds that it compares: of the whole batch, on one thread.
[[nodiscard]] double seconds_of(const ConvProblem& problem, const ConvAlgorithm& algorithm);

}  // namespace paceline::engine::cpu

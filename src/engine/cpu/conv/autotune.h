#pragma once

/// Chooses the algorithm of a convolution by timing all that can compute it.

#include <vector>

#include "engine/cpu/conv/algorithms.h"

namespace paceline::engine::cpu {

/// Times a chunk of each algorithm that can compute the problem, on the calling thread, with what belongs to
/// it once an update (packing weights, joining gradients), and takes the fastest for the whole batch. The
/// usual algorithm of the shape stays unless another one is clearly faster, so that chance decides nothing.
///
/// Cost     some milliseconds an algorithm for a convolution of a ResNet; memory for a chunk of each, or 6 MB
/// Threads  any; a OneThread must be in force
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

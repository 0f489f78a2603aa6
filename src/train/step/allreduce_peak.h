#pragma once

/// Measures the best bandwidth that a step's own all-reduces could reach.

#include "comm/communicator.h"
#include "train/step/buckets.h"

namespace paceline::train {

/// busbw in GB/s of reducing all `buckets` of `gradients` one after another while nothing else runs: the
/// median of several times. (Reducing one bucket repeatedly would stay in the cache and give a figure that no
/// step can reach.) Collective, over more than one rank.
///
/// Shapes   gradients [all buckets' floats], set to zero
/// Cost     six all-reduces of the whole gradient
[[nodiscard]] double allreduce_peak(comm::Communicator& communicator, const Buckets& buckets,
                                    base::Array gradients);

}  // namespace paceline::train

#pragma once

/// What the step's own communication could reach at best.

#include "comm/communicator.h"
#include "train/buckets.h"

namespace paceline::train {

/// busbw in GB/s of reducing all `buckets` of `gradients`, one behind the other, when nothing else runs: the
/// median of a few times. One bucket again and again would stay in the cache and promise what no step can
/// have. Collective, over more than one rank.
///
/// Shapes   gradients [all buckets' floats], set to zero
/// Cost     six all-reduces of the whole gradient
[[nodiscard]] double allreduce_peak(comm::Communicator& communicator, const Buckets& buckets,
                                    base::Array gradients);

}  // namespace paceline::train

#pragma once

/// Makes the StepRunner of a training. Here --bucket auto chooses its size too.

#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "train/step/step.h"

namespace paceline::train {

struct BucketChoice {
  double megabytes = 0;  ///< 1e6 bytes
  std::string why;       ///< one sentence with the measured numbers
};

/// The size that exposes least of a gradient of X bytes, if a reduction takes latency + bytes / bandwidth.
/// With buckets of s bytes there are X/s latencies, and s / bandwidth of the last bucket is left after the
/// backward pass; the sum is least at s = sqrt(X latency bandwidth). At least a hundredth of the gradient, at
/// most all of it. A pure function.
[[nodiscard]] BucketChoice best_bucket(double gradient_bytes, double latency_s, double bytes_per_s);

/// busbw in GB/s of reducing all buckets of a step one after another while nothing else runs: the median of
/// several times; 0 if nothing is reduced in buckets. (Reducing one bucket repeatedly would stay in the cache
/// and give a figure that no step can reach.) Sets the gradients to zero. Collective, over more than one
/// rank.
///
/// Cost     six all-reduces of the whole gradient
[[nodiscard]] double allreduce_peak(comm::Communicator& communicator, const StepRunner& steps);

/// Chooses the way of the steps (step.h) and warms the engine up for it. Adds to `notes` how the bucket size
/// was measured, if it was. Collective; no reduction is in progress at its end, but another rank may still be
/// in its warm-up: a barrier must follow.
[[nodiscard]] std::unique_ptr<StepRunner> make_step_runner(const StepContext& in,
                                                           std::vector<std::string>& notes);

}  // namespace paceline::train

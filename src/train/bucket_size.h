#pragma once

/// --bucket auto: how much gradient goes at a time, from what one reduction costs here.

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "engine/engine.h"
#include "train/job.h"

namespace paceline::train {

struct BucketChoice {
  double megabytes = 0;  ///< 1e6 bytes
  std::string why;       ///< one sentence with the measured numbers
};

/// The size that exposes least of a gradient of X bytes when a reduction takes latency + bytes / bandwidth:
/// with buckets of s bytes X/s latencies are spent, and after the backward pass the last bucket's s /
/// bandwidth is left: least at s = sqrt(X latency bandwidth). Never below a hundredth of the gradient, nor
/// more than all of it. Pure function.
[[nodiscard]] BucketChoice best_bucket(double gradient_bytes, double latency_s, double bytes_per_s);

/// The same with latency and bandwidth measured now: reductions of 64 KiB and of all of `gradients`, which
/// are set to zero. Every rank gets the same answer. Collective, over more than one rank.
///
/// Cost     five all-reduces of the whole gradient
[[nodiscard]] BucketChoice choose_bucket(comm::Communicator& communicator, base::Array gradients);

/// The bucket size of a run in 1e6 bytes: what was given, or with --bucket auto what is measured now, with a
/// note of it. Collective.
[[nodiscard]] double bucket_mb(const Job& job, comm::Communicator& communicator, engine::Engine& engine,
                               std::vector<std::string>& notes);

}  // namespace paceline::train

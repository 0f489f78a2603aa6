#pragma once

/// --bucket auto: chooses the bucket size from the measured cost of a reduction.

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "engine/engine.h"
#include "train/given/job.h"

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

/// The same with measured latency and bandwidth: reductions of 64 KiB and of all of `gradients`, which are
/// set to zero. Every rank gets the same answer. Collective, over more than one rank.
///
/// Cost     five all-reduces of the whole gradient
[[nodiscard]] BucketChoice choose_bucket(comm::Communicator& communicator, base::Array gradients);

/// The bucket size of a run in 1e6 bytes: the option's value, or with --bucket auto the measured choice, with
/// a note. Collective.
[[nodiscard]] double bucket_mb(const Job& job, comm::Communicator& communicator, engine::Engine& engine,
                               std::vector<std::string>& notes);

}  // namespace paceline::train

#pragma once

/// Replays the reductions of one step from the times at which buckets were ready: how long the step would
/// have waited with another link or other buckets. Pure functions.
///
///     start_j = max(ready_j, end_{j-1})      buckets leave in the order posted, one after the other
///     end_j   = start_j + T(N, X_j)
///     exposed = max(0, end_last - end of backward)
///
/// Exact for collectives that complete in order, as ours do (measure/spans.h). All times are seconds from the
/// begin of the backward pass.

#include <optional>
#include <span>
#include <vector>

namespace paceline::analysis {

struct ReplayedBucket {
  double ready_s = 0;     ///< when its gradients are final and it is posted
  double transfer_s = 0;  ///< T(N, X): duration of its reduction once it is alone on the link
};

/// How long the step waits after its backward pass.
///
/// Cost     linear
[[nodiscard]] double exposed_seconds(std::span<const ReplayedBucket> buckets, double backward_s);

/// T(X) = alpha + X / bandwidth for one number of workers, from its own buckets.
struct BucketLink {
  double alpha_s = 0;           ///< per reduction, whatever its size
  double seconds_per_byte = 0;  ///< 1 / bandwidth
  [[nodiscard]] double seconds(double bytes) const { return alpha_s + bytes * seconds_per_byte; }
};
struct BucketTransfer {
  double bytes = 0, seconds = 0;
};
/// The line through the buckets' transfer times that minimises relative errors, with no negative part.
/// Nothing if the largest bucket is smaller than twice the smallest: similar sizes do not determine the
/// latency.
[[nodiscard]] std::optional<BucketLink> fit_buckets(std::span<const BucketTransfer> buckets);

/// The same gradient cut into buckets of `bucket_bytes`. The time at which each would be ready is
/// interpolated linearly between the measured buckets. The rest at the end is a bucket of its own.
///
/// Shapes   ends [buckets]: bytes of the gradient up to the end of each measured bucket; ready_s [buckets]
[[nodiscard]] std::vector<ReplayedBucket> cut_anew(std::span<const double> ends,
                                                   std::span<const double> ready_s, double bucket_bytes,
                                                   const BucketLink& link);

}  // namespace paceline::analysis

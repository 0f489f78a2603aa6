#pragma once

/// The reductions of one step replayed from when each bucket was ready: what a step would have waited for,
/// had the link or the buckets been others. Pure functions.
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
  double ready_s = 0;     ///< its gradients are final, it is posted
  double transfer_s = 0;  ///< T(N, X): what its reduction takes once it is alone on the link
};

/// What the step stands still for behind its backward pass. Cost: linear
[[nodiscard]] double exposed_seconds(std::span<const ReplayedBucket> buckets, double backward_s);

/// T(X) = alpha + X / bandwidth of one number of workers, as far as its own buckets tell.
struct BucketLink {
  double alpha_s = 0;           ///< of one reduction, whatever its size
  double seconds_per_byte = 0;  ///< 1 / bandwidth
  [[nodiscard]] double seconds(double bytes) const { return alpha_s + bytes * seconds_per_byte; }
};
struct BucketTransfer {
  double bytes = 0, seconds = 0;
};
/// The line through the buckets' transfer times that minimises relative errors; neither part is below 0.
/// Nothing where the largest bucket is under twice the smallest: two sizes alike say nothing about latency.
[[nodiscard]] std::optional<BucketLink> fit_buckets(std::span<const BucketTransfer> buckets);

/// The same gradient cut into buckets of `bucket_bytes`: when each would be ready follows from the measured
/// cut, between whose ends gradients are taken to become final evenly. What is left at the end is a bucket.
///
/// Shapes   ends [buckets]: bytes of the gradient up to the end of each measured bucket; ready_s [buckets]
[[nodiscard]] std::vector<ReplayedBucket> cut_anew(std::span<const double> ends,
                                                   std::span<const double> ready_s, double bucket_bytes,
                                                   const BucketLink& link);

}  // namespace paceline::analysis

#include "analysis/steps/replay.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace paceline::analysis {

double exposed_seconds(std::span<const ReplayedBucket> buckets, double backward_s) {
  double end = 0;
  for (const auto& bucket : buckets) end = std::max(bucket.ready_s, end) + bucket.transfer_s;
  return std::max(0.0, end - backward_s);
}

std::optional<BucketLink> fit_buckets(std::span<const BucketTransfer> buckets) {
  constexpr double kApart = 2;
  double smallest = std::numeric_limits<double>::infinity(), largest = 0;
  // Weighted by 1 / t^2, so that errors are relative: sums of 1, X, X^2, t, X t.
  double w = 0, x = 0, xx = 0, t = 0, xt = 0;
  for (const auto& [bytes, seconds] : buckets) {
    if (bytes <= 0 || seconds <= 0) continue;
    smallest = std::min(smallest, bytes);
    largest = std::max(largest, bytes);
    const double weight = 1 / (seconds * seconds);
    w += weight;
    x += weight * bytes;
    xx += weight * bytes * bytes;
    t += weight * seconds;
    xt += weight * bytes * seconds;
  }
  if (largest < kApart * smallest || largest == 0) return std::nullopt;
  const double determinant = w * xx - x * x;
  if (determinant <= 0) return std::nullopt;
  const double alpha = (xx * t - x * xt) / determinant, slope = (w * xt - x * t) / determinant;
  // A value that no link can have is set to 0, and the other is fitted again.
  if (alpha < 0) return BucketLink{.alpha_s = 0, .seconds_per_byte = xt / xx};
  if (slope < 0) return BucketLink{.alpha_s = t / w, .seconds_per_byte = 0};
  return BucketLink{.alpha_s = alpha, .seconds_per_byte = slope};
}

namespace {

/// When the first `bytes` of the gradient are final.
double ready_of(std::span<const double> ends, std::span<const double> ready_s, double bytes) {
  const auto at = static_cast<std::size_t>(std::lower_bound(ends.begin(), ends.end(), bytes) - ends.begin());
  if (at >= ends.size()) return ready_s.back();
  const double begin = at == 0 ? 0 : ends[at - 1], before = at == 0 ? 0 : ready_s[at - 1];
  const double part = ends[at] > begin ? (bytes - begin) / (ends[at] - begin) : 1;
  return before + part * (ready_s[at] - before);
}

}  // namespace

std::vector<ReplayedBucket> cut_anew(std::span<const double> ends, std::span<const double> ready_s,
                                     double bucket_bytes, const BucketLink& link) {
  base::expects(!ends.empty() && ends.size() == ready_s.size(), "every bucket has an end and a time");
  base::expects(bucket_bytes > 0, "a bucket holds something");
  std::vector<ReplayedBucket> buckets;
  const double whole = ends.back();
  for (double begin = 0; begin < whole;) {
    const double end = std::min(whole, begin + bucket_bytes);
    buckets.push_back({.ready_s = ready_of(ends, ready_s, end), .transfer_s = link.seconds(end - begin)});
    begin = end;
  }
  return buckets;
}

}  // namespace paceline::analysis

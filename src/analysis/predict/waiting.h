#pragma once

/// Predicts how long N workers wait for the slowest of them, from the steps of a few.
///
/// Own work of rank r in step k is taken as common(k) + rank(r) + rest. What all ranks share (phases of the
/// host) makes nobody wait, so it is removed; the expected largest of N draws of the rest, with one rank that
/// is slower on average, is the wait. n samples speak of N <= n / 10 workers: of more, only two assumptions
/// about the tail do, an exponential and a power law (Pareto). Pure functions.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/rng.h"
#include "measure/record.h"

namespace paceline::analysis {

/// Own work in units of its mean, without what all ranks share: the samples of one kind of worker.
using OwnFactors = std::vector<double>;

/// The steps of measured workers, as factors on the typical worker's mean own work.
struct OwnWork {
  OwnFactors others;           ///< of every rank but the slowest, joined
  OwnFactors slowest;          ///< of the rank that was slowest on average; empty: of one worker only
  double typical_s = 0;        ///< mean own work of the typical rank
  double slowest_factor = 1;   ///< mean of the slowest rank over that of the typical one
  double shared_variance = 0;  ///< part of the variance that all ranks shared; 0 for one worker
  [[nodiscard]] std::size_t samples() const { return others.size() + slowest.size(); }
};

/// Nothing was measured: every step is as long as the mean.
///
/// Requires  records of one cell
[[nodiscard]] OwnWork own_work_of(std::span<const measure::Record* const> records);

/// The same with samples drawn again in blocks of 5 (bootstrap).
[[nodiscard]] OwnWork drawn_again(const OwnWork& work, base::Rng& rng);

/// What is assumed of workers of which too few steps were measured.
enum class Tail : std::uint8_t { none, exponential, pareto };

/// The largest factor among N workers: mean, and the means of equally likely parts of its distribution.
struct LargestFactor {
  static constexpr std::size_t kParts = 8;
  double mean = 1;
  double parts[kParts] = {1, 1, 1, 1, 1, 1, 1, 1};
  /// N is more than a tenth of the samples: with Tail::none the mean is "at least".
  bool is_beyond_samples = false;
};

/// Of one slowest and N - 1 other workers. Several N share the sorting.
///
/// Cost     O(samples) for each N, after a sort
[[nodiscard]] std::vector<LargestFactor> largest_factors(const OwnWork& work,
                                                         std::span<const std::int64_t> workers, Tail tail);

/// The expected largest of `workers` standard normal draws, to 1 % (Blom's formula).
[[nodiscard]] double largest_normal(double workers);

}  // namespace paceline::analysis

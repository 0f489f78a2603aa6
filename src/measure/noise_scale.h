#pragma once

/// The gradient's noise scale: the batch at which the noise of its gradient is as large as the gradient
/// itself. It is estimated from squared norms of gradients of small and of large batches of the same steps.
///
/// Let G be the gradient over all samples, and S the variance of a single sample's gradient, summed over the
/// parameters. The gradient of a batch of b samples has the expected squared norm |G|^2 + S / b. Two sizes of
/// batches give two equations, hence unbiased estimates of |G|^2 and S; the noise scale is S / |G|^2. A model
/// of training has samples to a target grow as 1 + B / (noise scale), so a batch much smaller than it costs
/// almost no more samples than single ones, and a batch much larger wastes nearly all that it adds.
///
/// Source   McCandlish, Kaplan, Amodei, "An empirical model of large-batch training", 2018, appendix A

#include <cstdint>
#include <optional>
#include <span>

#include "measure/training_record.h"

namespace paceline::measure {

/// The most values that an epoch keeps.
inline constexpr std::size_t kMostSquares = 128;

/// Joins neighbouring values, so that at most kMostSquares are left. A rest of fewer steps is left out.
[[nodiscard]] GradientSquares with_few_values(GradientSquares squares);

struct NoiseScale {
  /// In samples. None: |G|^2 was estimated as 0 or less, so only `low` is known.
  std::optional<double> batch;
  double low = 0;               ///< 95 % interval
  std::optional<double> high;   ///< none: |G|^2 cannot be told from 0
  double variance = 0;          ///< S
  double squared_gradient = 0;  ///< |G|^2
  int values = 0;               ///< from which it was computed
};

/// The fewest values for a noise scale.
inline constexpr std::size_t kFewestSquares = 8;

/// The noise scale over all values, as the ratio of the means of S and |G|^2. Its interval is Fieller's, by
/// Student's t, over at most 40 means of consecutive values: neighbouring steps may be alike. None: too few
/// values.
///
/// Requires  small_batch < large_batch, both lists have the same length
/// Source    Fieller, "Some problems in interval estimation", J. R. Stat. Soc. B 16, 1954
[[nodiscard]] std::optional<NoiseScale> noise_scale(std::span<const double> small,
                                                    std::span<const double> large, std::int64_t small_batch,
                                                    std::int64_t large_batch);
[[nodiscard]] inline std::optional<NoiseScale> noise_scale(const GradientSquares& squares) {
  return noise_scale(squares.small, squares.large, squares.small_batch, squares.large_batch);
}

}  // namespace paceline::measure

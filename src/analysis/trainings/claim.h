#pragma once

/// Judges a claim about accuracy from several seeds: that a training is no worse than a baseline.
///
/// A difference that is not significant does not show that two trainings are equally accurate: few seeds find
/// nothing. So "no worse" is a claim of its own (a non-inferiority test): the one-sided 95 % interval of the
/// difference has to end above minus a margin that was chosen before. "Worse" is said where the 95 % interval
/// lies below zero. Anything else is not decided, and more seeds would decide it. All of it is about the test
/// images at hand: that other images would give other accuracies is not part of these intervals.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace paceline::analysis {

/// By how much a training may be less accurate and still count as no worse, unless --margin says otherwise:
/// half a point.
inline constexpr double kMargin = 0.005;

/// The accuracy that one seed reached. A seed whose training failed counts as guessing (1 / classes), the
/// worst there is.
struct SeedAccuracy {
  std::string seed;
  double accuracy = 0;
};

enum class ClaimVerdict : std::uint8_t {
  no_worse,             ///< by less than the margin, if at all
  worse_within_margin,  ///< worse, but surely by less than the margin
  worse,                ///< the 95 % interval lies below zero, and may end beyond the margin
  not_decided,
};
[[nodiscard]] const char* word_of(ClaimVerdict verdict);  ///< "no worse", "worse, within the margin", ...

struct Claim {
  ClaimVerdict verdict = ClaimVerdict::not_decided;
  double margin = kMargin;
  double difference = 0;     ///< the other's mean accuracy minus the baseline's
  double low = 0, high = 0;  ///< its 95 % interval, by Student's t over seeds
  double bound = 0;          ///< the lower end of its one-sided 95 % interval
  /// How many seeds both trained: the same order of images and the same first weights, so their differences
  /// vary less. 0: the seeds are others, and the spreads of both add (Welch).
  int pairs = 0;
  /// Of a permutation test for "worse", which assumes no distribution: how often chance alone would order the
  /// accuracies as badly. Exact; none where there are more than 200,000 orders.
  std::optional<double> p;
  double least_p = 1;  ///< the smallest that this number of seeds can give
  int seeds_needed =
      0;  ///< not decided: of each training, for "no worse" in four of five cases if both are equal
};

/// None with fewer than two seeds on a side: then nothing is known of the spread over seeds. Seeds are paired
/// if the side with fewer has none of its own; a seed stands once on a side.
///
/// Requires  margin > 0
[[nodiscard]] std::optional<Claim> claim(std::span<const SeedAccuracy> baseline,
                                         std::span<const SeedAccuracy> other, double margin);

}  // namespace paceline::analysis

#pragma once

/// How many times as fast a row is as its baseline.

#include <optional>
#include <string>
#include <vector>

#include "analysis/check/study.h"

namespace paceline::analysis::rules {

struct Ratio {
  double value = 0;
  Interval interval;           ///< of the printed digits
  std::string how;             ///< "100.0 / 125.0"
  bool of_fixed_data = false;  ///< of times that are of the same images
  double images = 0;           ///< how many times as many images the time is of; 0 for rates
};

/// Images/s of row `a` over those of row `b`, by their times and by their rates; all that the rows can mean
/// where they do not say it. Empty where the two cannot be compared.
[[nodiscard]] std::vector<Ratio> speedups(const Row& a, const Row& b);

/// The same as far as it is known without the number of workers of `row`.
[[nodiscard]] std::optional<Ratio> ratio_without_workers(const Row& row, const Row& base);

/// The first of the rows `baselines` from which a ratio of row `i` follows, as it is or in per cent.
[[nodiscard]] std::optional<std::size_t> baseline_of(const Study& study, std::size_t i,
                                                     const std::vector<std::size_t>& baselines,
                                                     const table::Number& printed, bool is_efficiency);

/// Rows of growing numbers of workers whose rate does not grow: one source feeds them all.
struct Ceiling {
  std::vector<std::size_t> rows;
  double least = 0, most = 0;  ///< images/s
};
[[nodiscard]] std::vector<Ceiling> input_ceilings(const Study& study);

}  // namespace paceline::analysis::rules

#pragma once

/// How many times as fast a row is as its baseline.

#include <string>
#include <vector>

#include "analysis/check/study.h"

namespace paceline::analysis::rules {

struct Ratio {
  double value = 0;
  Interval interval;           ///< of the printed digits
  std::string how;             ///< "100.0 / 125.0"
  bool of_fixed_data = false;  ///< of times that are of the same images
};

/// Images/s of row `a` over those of row `b`, by their times and by their rates; all that the rows can mean
/// where they do not say it. Empty where the two cannot be compared.
[[nodiscard]] std::vector<Ratio> speedups(const Row& a, const Row& b);

/// Whether a ratio of row `i` follows from a row of its own set-up with fewer workers, where its baseline has
/// another.
[[nodiscard]] bool follows_own(const Study& study, std::size_t i, const table::Number& printed,
                               bool is_efficiency);

/// Rows of growing numbers of workers whose rate does not grow: one source feeds them all.
struct Ceiling {
  std::vector<std::size_t> rows;
  double least = 0, most = 0;  ///< images/s
};
[[nodiscard]] std::vector<Ceiling> input_ceilings(const Study& study);

}  // namespace paceline::analysis::rules

#pragma once

/// Computes speedups of a table's row over its baseline, and finds rows whose rate does not grow with the
/// workers.

#include <optional>
#include <string>
#include <vector>

#include "check/study.h"

namespace paceline::check {

class Findings;

struct Ratio {
  double value = 0;
  Interval interval;           ///< from the printed digits
  std::string how;             ///< "100.0 / 125.0"
  bool of_fixed_data = false;  ///< of times for the same images
  double images = 0;           ///< ratio of the images that the times are for; 0 for rates
};

/// Images/s of row `a` over those of row `b`, by their times and by their rates: all possible meanings if the
/// rows do not say. Empty if the two cannot be compared.
[[nodiscard]] std::vector<Ratio> speedups(const Row& a, const Row& b);

/// The same, as far as it is known without the number of workers of `row`.
[[nodiscard]] std::optional<Ratio> ratio_without_workers(const Row& row, const Row& base);

/// A row, its first baseline, which has fewer workers, and the only ratio of the two.
struct ScaledRow {
  std::size_t row, baseline;
  Ratio ratio;
  double scale;     ///< times the workers
  Interval likely;  ///< the ratio with the noise of both times
  double error;     ///< its standard error, as a part of it
};
[[nodiscard]] std::vector<ScaledRow> scaled_rows(const Study& study);

/// The first of the rows `baselines` that gives `printed` as the ratio of row `i`, as a factor or in per
/// cent.
[[nodiscard]] std::optional<std::size_t> baseline_of(const Study& study, std::size_t i,
                                                     const std::vector<std::size_t>& baselines,
                                                     const table::Number& printed, bool is_efficiency);

/// Whether the printed communication of row `i` is its time or compute without the ideal share of another
/// row's.
[[nodiscard]] bool is_residual(const Study& study, std::size_t i);

/// Rows with growing numbers of workers whose rate does not grow: one source feeds them all.
struct Ceiling {
  std::vector<std::size_t> rows;
  double least = 0, most = 0;  ///< images/s, or epochs an hour
  bool of_images = true;
  bool is_said = true;  ///< that loading is in the times
  bool is_sure = true;  ///< nothing else in the table can explain it
};
/// `findings`: told of each group of rates that was compared.
[[nodiscard]] std::vector<Ceiling> input_ceilings(const Study& study, Findings* findings = nullptr);

}  // namespace paceline::check

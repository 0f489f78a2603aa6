#pragma once

/// Finds why one batch is faster than another: at which rates the steps of each compute, and which part of an
/// image's time a larger batch saves.

#include <optional>
#include <span>
#include <vector>

#include "analysis/compare/cell.h"
#include "analysis/steps/breakdown.h"

namespace paceline::analysis {

/// What limits even an ideal step.
enum class Bound {
  arithmetic,
  memory,
  either,  ///< depends on how many of the operations the algorithms save
};

/// What the steps of one cell reach. A product and a copy were measured before the run; the product's rate is
/// scaled to the threads of the cell's workers. Neither is there if none was measured, or with several
/// processes, since they are of process 0's cores.
///
/// No share of the product's rate is given: it is no upper bound of `flops_per_s`, which counts the
/// operations of the direct form, also where Winograd does a quarter of them
/// (docs/decisions/no-share-of-a-peak.md).
struct Reach {
  const Cell* cell = nullptr;
  Breakdown ledger;
  Estimate epoch_without_data_s;  ///< the cell's epoch without the part in which steps wait for the loader
  std::optional<double> flops_per_s;  ///< of all workers, while they compute forward and backward
  std::optional<double> bytes_per_s;  ///< likewise, forward, backward and update; counted op by op
  std::optional<double> intensity;    ///< floating-point operations per byte, of a whole step
  std::optional<double> product_flops_per_s, copy_bytes_per_s;
  /// By the intensity. None if product or copy was not measured, or was certainly slowed by other programs:
  /// the steps computed faster than the product explains.
  [[nodiscard]] std::optional<Bound> bound() const;
};

/// Requires  the cell is measured
[[nodiscard]] Reach reach(const Cell& cell);

/// Parts of a step.
enum class CausePart { forward_and_backward, update, communication, data_wait, other };

/// One image's time at two batches, and each part's contribution to the difference.
struct Cause {
  const Reach* from = nullptr;
  const Reach* to = nullptr;
  double before_s = 0, after_s = 0;  ///< per image: a step over the local batch
  struct Part {
    CausePart part;
    double before_s = 0, after_s = 0;
    [[nodiscard]] double saved_s() const { return before_s - after_s; }
  };
  std::vector<Part> parts;  ///< the largest change first; they add up to the difference
  /// Whether the intervals per image overlap, so that no difference is shown.
  [[nodiscard]] bool is_noise() const;
};

/// Cells that differ only in their batch, in its order. Their workers are joined alike.
struct BatchSeries {
  std::vector<Reach> batches;
  std::size_t fastest = 0;  ///< index of the most images per second
  /// From the smallest batch to the fastest, and from there to the largest.
  [[nodiscard]] std::optional<Cause> why_faster() const;
  [[nodiscard]] std::optional<Cause> why_no_longer() const;
};

/// One series for each set-up among the measured cells of sweep and scaling, also with a single batch.
[[nodiscard]] std::vector<BatchSeries> batch_series(std::span<const Cell> cells);

}  // namespace paceline::analysis

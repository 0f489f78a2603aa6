#pragma once

/// Finds why one batch is faster than another: how much of the cores' peak the steps of each reach, and which
/// part of an image's time a larger batch saves.

#include <optional>
#include <span>
#include <vector>

#include "analysis/compare/cell.h"
#include "analysis/steps/breakdown.h"

namespace paceline::analysis {

/// What the steps of one cell reach. Peaks were measured before the run, and are scaled to the threads of the
/// cell's workers. Nothing if none was measured, or with several processes, since the peak is of process 0's
/// cores.
struct Reach {
  const Cell* cell = nullptr;
  Breakdown ledger;
  double steps_an_epoch = 0;      ///< D / B, not rounded
  Estimate epoch_without_data_s;  ///< the cell's epoch without the part in which steps wait for the loader
  std::optional<double> flops_per_s;  ///< of all workers, while they compute forward and backward
  std::optional<double> bytes_per_s;  ///< likewise, forward, backward and update; counted op by op
  std::optional<double> intensity;    ///< floating-point operations per byte, of a whole step
  std::optional<double> peak_flops_per_s, peak_bytes_per_s;
  [[nodiscard]] std::optional<double> share_of_peak() const;
  [[nodiscard]] std::optional<double> share_of_bandwidth() const;
  /// Whether memory, not arithmetic, would limit even an ideal step of this intensity.
  [[nodiscard]] std::optional<bool> is_memory_bound() const;
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

#pragma once

/// Why a batch is faster than another: what the steps of each reach of what the cores can do, and which part
/// of an image's time a larger batch saves.

#include <optional>
#include <span>
#include <vector>

#include "analysis/breakdown.h"
#include "analysis/cell.h"

namespace paceline::analysis {

/// What the steps of one cell reach. Peaks are those that were measured before the run, for as many threads
/// as the cell's workers have, in proportion; nothing where none was measured, and for several processes: the
/// peak is of the cores of process 0.
struct Reach {
  const Cell* cell = nullptr;
  Breakdown ledger;
  double steps_an_epoch = 0;      ///< D / B, not rounded
  Estimate epoch_without_data_s;  ///< the cell's epoch less the part of its steps that waits for the loader
  std::optional<double> flops_per_s;  ///< of all workers, while they compute forward and backward
  std::optional<double> bytes_per_s;  ///< likewise, forward, backward and update; counted op by op
  std::optional<double> intensity;    ///< floating-point operations a byte, of a whole step
  std::optional<double> peak_flops_per_s, peak_bytes_per_s;
  [[nodiscard]] std::optional<double> share_of_peak() const;
  [[nodiscard]] std::optional<double> share_of_bandwidth() const;
  /// Whether even an ideal step of this intensity would be held up by the memory, not the arithmetic.
  [[nodiscard]] std::optional<bool> is_memory_bound() const;
};

/// Precondition: the cell is measured.
[[nodiscard]] Reach reach(const Cell& cell);

/// Parts of a step that answer for its time.
enum class CausePart { forward_and_backward, update, communication, data_wait, other };

/// One image's time at two batches, and what each part has of the difference.
struct Cause {
  const Reach* from = nullptr;
  const Reach* to = nullptr;
  double before_s = 0, after_s = 0;  ///< of an image: a step over the local batch
  struct Part {
    CausePart part;
    double before_s = 0, after_s = 0;
    [[nodiscard]] double saved_s() const { return before_s - after_s; }
  };
  std::vector<Part> parts;  ///< that with most of the change first; they add up to it
  /// The steps' intervals overlap once they are counted by the image: no difference was shown.
  [[nodiscard]] bool is_noise() const;
};

/// Cells that differ in their batch alone, by it: their workers are joined alike.
struct BatchSeries {
  std::vector<Reach> batches;
  std::size_t fastest = 0;  ///< most images a second
  /// From the smallest batch to the fastest, and from there to the largest.
  [[nodiscard]] std::optional<Cause> why_faster() const;
  [[nodiscard]] std::optional<Cause> why_no_longer() const;
};

/// Of the measured cells of a sweep and of scaling: each set-up a series. One batch alone is one, too.
[[nodiscard]] std::vector<BatchSeries> batch_series(std::span<const Cell> cells);

}  // namespace paceline::analysis

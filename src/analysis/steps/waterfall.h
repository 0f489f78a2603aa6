#pragma once

/// Computes where the efficiency of N workers is lost: the difference from the baseline, as named parts of a
/// step that add up.
///
///     ideal   t0 = t(N0) (weak), t(N0) N0 / N (strong)
///     loss    L = t(N) - t0,   1 - E = L / t(N): a part over t(N) is points of efficiency
///     part    line(N) - f line(N0), f = 1 (weak), N0 / N (strong)        lines: step_lines.h
///     compute of strong scaling is two parts. They use c1(b), the compute time of a cell with the baseline's
///             workers at the smaller batch: "smaller batch" c1(b) - f c1(B), "sharing" c(N) - c1(b)
///
/// The sum is exact: the parts do not depend on an order, and nothing is estimated twice. A negative part is
/// a gain. docs/waterfall.md says what each part means and what it cannot show.

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/compare/cell.h"
#include "analysis/steps/scaling.h"
#include "analysis/steps/step_lines.h"

namespace paceline::analysis {

enum class LossPart : std::uint8_t {
  smaller_batch,  ///< strong scaling: fewer samples per step are computed less efficiently
  sharing,        ///< slower compute beside other workers: cores, caches, memory, clock, the reduction itself
  imbalance,      ///< a rank that is slower on average
  jitter,         ///< different ranks are last in different steps
  other_wait,
  latency,
  transfer,
  data_wait,
  copy,
  update,
  other,
};
inline constexpr std::size_t kLossParts = 11;
/// The line behind a part from imbalance on: these are in the order of the lines.
[[nodiscard]] constexpr Line line_of(LossPart part) { return static_cast<Line>(static_cast<int>(part) - 1); }
static_assert(line_of(LossPart::imbalance) == Line::imbalance && line_of(LossPart::other) == Line::other);
[[nodiscard]] const char* name(LossPart part);  ///< "smaller batch", "exposed transfer", ...

struct LossFigure {
  double seconds = 0;  ///< per step
  /// 95 %, seconds. Without an interval nothing is known to be beyond noise.
  std::optional<double> low = {}, high = {};
  [[nodiscard]] bool is_within_noise() const { return !low || (*low <= 0 && *high >= 0); }
};

struct EfficiencyLoss {
  const Cell* baseline = nullptr;
  const Cell* cell = nullptr;
  Mode mode = Mode::weak;
  double ideal_s = 0, step_s = 0;  ///< t0 and t(N): means of the ledger, of the typical rank
  std::array<LossFigure, kLossParts> parts{};
  std::size_t repeats = 0;  ///< minimum over the cells
  /// Parts that could not be separated are included in another part.
  bool batch_is_in_sharing = false, jitter_is_in_other = false, latency_is_in_transfer = false;
  StepLines lines;             ///< of the cell
  double alone_compute_s = 0;  ///< c1(b); if unknown, f c1(B)

  [[nodiscard]] const LossFigure& operator[](LossPart part) const {
    return parts[static_cast<std::size_t>(part)];
  }
  [[nodiscard]] double loss_s() const { return step_s - ideal_s; }
  [[nodiscard]] double efficiency() const { return ideal_s / step_s; }
  /// Fraction of the step: 0.05 is 5 points of efficiency.
  [[nodiscard]] double points(LossPart part) const { return (*this)[part].seconds / step_s; }
};

/// The repeats of one cell as lines that can be resampled (bootstrap).
class SampledCell {
 public:
  /// Keeps no reference to the cell.
  ///
  /// Requires  the cell is measured
  explicit SampledCell(const Cell& cell);
  [[nodiscard]] std::size_t size() const { return repeats_.size(); }
  [[nodiscard]] const SampledSteps& repeat(std::size_t index) const { return repeats_[index % size()]; }
  /// Whether draws differ: between repeats, or between blocks of steps.
  [[nodiscard]] bool has_spread() const { return size() > 1 || repeats_.front().can_be_drawn(); }
  [[nodiscard]] StepLines mean() const;
  /// The mean of as many repeats, drawn with replacement, each of drawn steps.
  [[nodiscard]] StepLines draw(base::Rng& rng) const;
  /// The repeat whose step is the middle one, or the mean of the two: a repeat that a busy host slowed down
  /// moves a mean of three, but not this.
  [[nodiscard]] StepLines middle() const;
  [[nodiscard]] StepLines draw_middle(base::Rng& rng) const;  ///< of repeats and steps drawn as by draw()
  template <typename Knows>
  [[nodiscard]] bool all(Knows knows) const {
    return std::ranges::all_of(repeats_, knows);
  }

 private:
  [[nodiscard]] std::vector<StepLines> own_lines() const;
  /// As many repeats, drawn with replacement, each of drawn steps.
  [[nodiscard]] std::vector<StepLines> draws(base::Rng& rng) const;
  std::vector<SampledSteps> repeats_;
};

/// `alone`: cells with the baseline's workers at other batches that may be compared with it. c1(b) is that of
/// the cell at b, else interpolated between the two around it, else unknown.
///
/// Intervals: 1,000 draws of repeats and of blocks of steps, of all cells jointly, widened by Student's
/// factor for few repeats. With fewer than 3 repeats of any cell: the extremes over the repeats, but at least
/// what the blocks give. None if a cell has one repeat, whose steps are a single block: every draw would be
/// that block. The same records give the same intervals.
///
/// Requires  both cells are measured, and `cell` has at least as many workers
[[nodiscard]] EfficiencyLoss efficiency_loss(const Cell& baseline, const Cell& cell, Mode mode,
                                             std::span<const Cell* const> alone = {});

/// The cells among `cells` that can be `alone` for a baseline: measured, with as many workers and threads,
/// and comparable.
[[nodiscard]] std::vector<const Cell*> cells_alone(std::span<const Cell> cells, const Cell& baseline);

}  // namespace paceline::analysis

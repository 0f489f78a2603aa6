#pragma once

/// Throughput against batch size: the curve, its knee, and where memory or data end.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/cell.h"
#include "analysis/comparability.h"

namespace paceline::analysis {

/// The knee is the smallest batch whose throughput is within this part of the best.
inline constexpr double kKneeTolerance = 0.05;

/// Why a batch was not measured.
enum class Limit { none, memory, data, not_timed, failed };

struct SweepPoint {
  const Cell* cell = nullptr;
  Limit limit = Limit::none;  ///< none: measured
  Verdict verdict;            ///< against the first measured point; if not comparable, not on the curve
  bool on_curve = false;
  // Of the repeat whose measured peak is farthest from its plan.
  std::int64_t plan_bytes = 0;
  std::optional<std::int64_t> peak_bytes;
  std::optional<double> peak_over_plan;
};

/// One model on one number of workers, joined in one way.
struct Sweep {
  int workers = 1;
  std::string subject = {};  ///< as a ScalingGroup's
  /// "2 processes over shared memory" if equally many workers were swept in several set-ups; else empty.
  std::string setup = {};
  std::vector<SweepPoint> points;  ///< by batch
  // Indices of `points`; empty if nothing was measured.
  std::optional<std::size_t> best, knee;
  /// The knee and points that may be the knee as well, by their intervals or because they have none: at least
  /// two, or none if the knee is decided.
  std::vector<std::size_t> undecided;
  std::optional<std::int64_t> largest_that_fits;  ///< local batch; measured, or planned to fit
  bool largest_was_measured = false;
  /// What ended the growth at largest_that_fits: memory, data, or neither (no larger batch was asked for).
  Limit largest_met = Limit::none;
  int on_curve = 0;                                   ///< points that are compared; a single one has no knee
  std::optional<std::size_t> memory_ends, data_ends;  ///< first point beyond
};

/// All measured sweeps, by model and data, workers and set-up. No sweep has workers joined in two ways, or
/// two measured cells of one batch whose set-ups differ in anything that affects times, except circumstances.
/// For a model without sweep cells, cells of one worker of other kinds are used if they have at least two
/// batches. If several versions (hosts, libraries ...) measured a batch, the curve has the point of the one
/// that measured most batches; the others' points are left off, with the reason.
[[nodiscard]] std::vector<Sweep> sweeps(std::span<const Cell> cells);

/// The sweep of a model with the highest throughput; null if nothing of it was measured.
[[nodiscard]] const Sweep* best_of(std::span<const Sweep> sweeps, std::string_view subject);

/// Index of the smallest batch within kKneeTolerance of the best throughput.
///
/// Requires  not empty, ordered by batch
[[nodiscard]] std::size_t knee(std::span<const double> images_per_s);

}  // namespace paceline::analysis

#pragma once

/// Throughput against batch size: the curve, its knee, and where memory or data ends.

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
  Verdict verdict;            ///< against the first measured point; not comparable: not on the curve
  bool on_curve = false;
  // Of the repeat whose measured peak is farthest from its plan.
  std::int64_t plan_bytes = 0;
  std::optional<std::int64_t> peak_bytes;
  std::optional<double> peak_over_plan;
};

/// One model on so many workers, joined in one way.
struct Sweep {
  int workers = 1;
  std::string subject = {};  ///< as a ScalingGroup's
  /// "2 processes over shared memory" where as many workers were swept in several set-ups; else empty.
  std::string setup = {};
  std::vector<SweepPoint> points;  ///< by batch
  // Into `points`; empty when nothing was measured.
  std::optional<std::size_t> best, knee;
  /// The knee and those that it could be as well, by their intervals or for want of one: at least two, or
  /// none where the knee is decided.
  std::vector<std::size_t> undecided;
  std::optional<std::int64_t> largest_that_fits;  ///< local batch; measured, or planned to fit
  bool largest_was_measured = false;
  /// What ended the growth at largest_that_fits: memory, data, or none of both (nobody asked for more).
  Limit largest_met = Limit::none;
  int on_curve = 0;                                   ///< points that are compared: of one there is no knee
  std::optional<std::size_t> memory_ends, data_ends;  ///< first point beyond
};

/// Every sweep that was measured, by model and data, workers and set-up: no sweep has workers joined in two
/// ways, nor two measured cells of one batch whose set-ups differ in what times depend on, circumstances
/// apart. Of a model without cells of the sweep the cells of one worker in other kinds serve when they
/// have at least two batches. A batch that several versions (hosts, libraries ...) measured is on the curve
/// with the one that measured most batches; the others' point is left off, with the reason.
[[nodiscard]] std::vector<Sweep> sweeps(std::span<const Cell> cells);

/// The sweep with the highest throughput of a model; null where nothing of it was measured.
[[nodiscard]] const Sweep* best_of(std::span<const Sweep> sweeps, std::string_view subject);

/// Index of the smallest batch within kKneeTolerance of the best throughput. Precondition: not empty, by
/// batch.
[[nodiscard]] std::size_t knee(std::span<const double> images_per_s);

}  // namespace paceline::analysis

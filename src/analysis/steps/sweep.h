#pragma once

/// Computes throughput against batch size: the curve, its knee (the smallest batch near the best), and where
/// memory or data end.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/compare/cell.h"
#include "analysis/compare/comparability.h"

namespace paceline::analysis {

/// The knee is the smallest batch whose throughput is at least (1 - kKneeTolerance) times the best.
inline constexpr double kKneeTolerance = 0.05;

/// Why a batch was not measured: its plan exceeds the memory; it exceeds the data set; its plan fits but it
/// was not timed, to find the largest batch that fits; it failed.
enum class Limit { none, memory, data, not_timed, failed };

struct SweepPoint {
  const Cell* cell = nullptr;
  Limit limit = Limit::none;  ///< none: measured
  Verdict verdict;  ///< compared with the measured point of the smallest batch; if not comparable, not on
                    ///< the curve
  bool on_curve = false;
  // Planned and measured memory, of the repeat whose ratio is farthest from 1.
  std::int64_t plan_bytes = 0;
  std::optional<std::int64_t> peak_bytes;
  std::optional<double> peak_over_plan;
};

/// One model on one number of workers in one set-up (threads, or processes over one kind of connection).
struct Sweep {
  int workers = 1;
  std::string subject = {};  ///< model and data, as in ScalingGroup (scaling.h)
  /// "2 processes over shared memory" if equally many workers were swept in several set-ups; else empty.
  std::string setup = {};
  std::vector<SweepPoint> points;  ///< by batch
  // Indices of `points`; nullopt if no point was measured, `knee` also if only one was.
  std::optional<std::size_t> best, knee;
  /// If the knee is uncertain: it and all other points that may be the knee, because their intervals allow it
  /// or because they have no interval. Otherwise empty.
  std::vector<std::size_t> undecided;
  std::optional<std::int64_t> largest_that_fits;  ///< local batch; measured, or predicted to fit
  /// What ended the growth at largest_that_fits: memory, data, or neither (no larger batch was asked for).
  Limit largest_met = Limit::none;
  int on_curve = 0;  ///< number of points on the curve
};

/// All measured sweeps, by model and data, workers and set-up. Within a sweep all cells have the same set-up
/// and settings that affect times; only circumstances (host, program version, libraries ...) may differ. If a
/// batch was measured in several circumstances, the curve has the point of those that measured most batches;
/// the other points stay off the curve, and their verdict has the reason. For a model without sweep cells,
/// cells with one worker of other kinds are used if they have at least two batches.
[[nodiscard]] std::vector<Sweep> sweeps(std::span<const Cell> cells);

/// Index of the smallest batch within kKneeTolerance of the best throughput.
///
/// Requires  not empty, ordered by batch
[[nodiscard]] std::size_t knee(std::span<const double> images_per_s);

}  // namespace paceline::analysis

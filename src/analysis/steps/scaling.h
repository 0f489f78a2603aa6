#pragma once

/// Computes speedup and efficiency for growing numbers of workers. Weak and strong scaling have different
/// formulas and never share a row.
///
///   weak    local batch fixed: E = t_step(1) / t_step(N); scaled speedup = N E
///   strong  global batch fixed: S = T(1) / T(N); E = S / N
///
/// The time of an epoch over the same data already contains the 1/N: the ratio T_epoch(1) / T_epoch(N) is the
/// epoch speedup and must not be multiplied by N. If no cell of one worker was measured, the fewest workers
/// N0 are the baseline, and N / N0 takes the place of N.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/compare/cell.h"
#include "analysis/compare/comparability.h"

namespace paceline::analysis {

enum class Mode { weak, strong };
[[nodiscard]] const char* name(Mode mode);

struct ScalingRow {
  const Cell* cell = nullptr;
  bool is_baseline = false;
  Verdict verdict;          ///< against the group's baseline
  bool has_ratios = false;  ///< measured, and comparable with a measured baseline
  Estimate efficiency;      ///< E of the mode
  Estimate speedup;         ///< weak: N E; strong: S
  Estimate epoch;           ///< T_epoch(baseline) / T_epoch(N)
};

/// One batch with growing workers, for one model and one set-up.
struct ScalingGroup {
  std::int64_t batch = 0;  ///< local for weak, global for strong
  /// "resnet8-cifar" if the report has several models or data sets; else empty.
  std::string subject = {};
  /// "threads of one process", "loader-threads 4", if the batch was measured in several set-ups with equally
  /// many workers, each of which is a group; else empty.
  std::string setup = {};
  const Cell* baseline = nullptr;  ///< null if nothing was measured
  std::string baseline_name;       ///< "1 worker without any communicator"
  /// "version 0.2.0" if the batch was scaled in several circumstances, each of which is a group; else empty.
  std::string circumstances;
  std::vector<ScalingRow> rows;  ///< by workers
};

/// Groups of the mode, by model and data, then by batch, then by set-up (setup_groups.h). No group has two
/// measured cells with equally many workers whose set-ups differ in anything that affects times, except
/// circumstances. A single worker is the baseline of every way of joining workers, and may be in several
/// groups.
///
/// Cells of other kinds are included if they fit (for kind "train" the given batch, local or global,
/// determines the mode) and there are at least two numbers of workers, or workers joined in two ways. Cells
/// of several versions (or hosts, libraries ...), each with a baseline of the fewest workers, are compared
/// within each. Single cells of another version stay in the group, with a remark, as do those of a study that
/// another version continued.
[[nodiscard]] std::vector<ScalingGroup> scaling(std::span<const Cell> cells, Mode mode);

}  // namespace paceline::analysis

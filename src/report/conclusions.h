#pragma once

/// Conclusions: all results of analysis for a set of records, computed once for all sections.
///
/// Lifetime  refers to the records; cannot be copied, since its parts point to its cells

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/compare/cell.h"
#include "analysis/compare/consistency.h"
#include "analysis/compare/setup_groups.h"
#include "analysis/predict/score.h"
#include "analysis/steps/bandwidth.h"
#include "analysis/steps/breakdown.h"
#include "analysis/steps/scaling.h"
#include "analysis/steps/sweep.h"
#include "analysis/steps/waterfall.h"
#include "analysis/target/answer.h"
#include "analysis/target/steps_to_target.h"
#include "analysis/trainings/converge.h"

namespace paceline::report {

/// A finding that may apply to several records, listed once with the first record's numbers.
struct Remark {
  analysis::Finding finding;
  std::vector<std::string> records;  ///< ids
};
/// Joins remarks that differ only in their numbers.
void add_remark(std::vector<Remark>& remarks, analysis::Finding finding, const std::string& record);

/// The efficiency losses of a scaling group's rows against its baseline.
struct LossesOfGroup {
  const analysis::ScalingGroup* group = nullptr;
  analysis::Mode mode = analysis::Mode::weak;
  std::vector<analysis::EfficiencyLoss> rows;  ///< by workers: those with ratios
};

struct RowOfGroup {
  const analysis::ScalingGroup* group = nullptr;
  const analysis::ScalingRow* row = nullptr;
};

/// What the records of a subject say about more workers.
struct PredictedWorkers {
  analysis::StepModel model;
  analysis::Forecast forecast;
};

/// With how many workers a target is reached, by a curve and the predicted steps of its model.
struct AnsweredTarget {
  analysis::StepsToTarget target;
  analysis::TargetAnswer answer;  ///< with a point at least
  std::int64_t lacks_link = 0;    ///< the fewest workers whose network is not known; 0: none
};

struct Conclusions {
  Conclusions() = default;
  Conclusions(Conclusions&&) = default;
  Conclusions(const Conclusions&) = delete;
  Conclusions& operator=(const Conclusions&) = delete;

  std::span<const measure::Record> records;
  std::vector<analysis::Cell> cells;
  std::vector<analysis::ScalingGroup> weak, strong;
  std::vector<LossesOfGroup> losses;  ///< of groups with ratios, weak before strong
  std::vector<analysis::Sweep> sweeps;
  std::vector<analysis::CellGroup>
      subjects;  ///< one for each model and data set, with names if there are several
  /// [subjects], by add_predictions(); none: no workers or batches were compared, or not of one set-up.
  std::vector<std::optional<PredictedWorkers>> predictions;
  std::span<const analysis::ScoredPrediction> scored;  ///< as given to build()
  std::optional<analysis::Convergence> convergence;
  std::vector<analysis::StepsToTarget> targets;
  std::vector<AnsweredTarget> answered_targets;  ///< by add_predictions()
  std::vector<Remark> remarks;

  /// The number of records of a study ("sweep", "scale", "converge"), and of those that were not measured
  /// completely because it was stopped.
  struct Stopped {
    long records = 0, unmeasured = 0;
  };
  [[nodiscard]] Stopped stopped_study() const;

  [[nodiscard]] const std::vector<analysis::ScalingGroup>& scaling(analysis::Mode mode) const {
    return mode == analysis::Mode::weak ? weak : strong;
  }
  /// All rows, weak before strong.
  [[nodiscard]] std::vector<RowOfGroup> rows_of_scaling() const;
  /// Whether the cell is a row of weak or of strong scaling.
  [[nodiscard]] bool is_scaled(const analysis::Cell& cell) const;
};

/// Predicts 1 to 256 workers in weak scaling at the batch with the best throughput, over the links that the
/// records themselves show. `emulated`: of their --emulate-link.
///
/// Cost     some 0.05 s for each subject
void add_predictions(Conclusions& conclusions, const std::optional<analysis::AddedLink>& emulated);

/// `margin`: by how many a training may be less accurate and still be called no worse.
///
/// Requires  records is not empty
[[nodiscard]] Conclusions conclude(std::span<const measure::Record> records,
                                   double margin = analysis::kMargin);

}  // namespace paceline::report

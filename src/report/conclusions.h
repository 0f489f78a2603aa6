#pragma once

/// Everything that analysis says about a set of records, worked out once for all sections.
///
/// Lifetime  looks into the records that it was made from; not to be copied (its parts point at its cells)

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/bandwidth.h"
#include "analysis/breakdown.h"
#include "analysis/cell.h"
#include "analysis/consistency.h"
#include "analysis/converge.h"
#include "analysis/scaling.h"
#include "analysis/setup_groups.h"
#include "analysis/sweep.h"
#include "analysis/waterfall.h"

namespace paceline::report {

/// A finding about one record, said once however many records it is true of: with the first one's numbers.
struct Remark {
  analysis::Finding finding;
  std::vector<std::string> records;  ///< ids
};
/// Joins remarks that differ only in their numbers.
void add_remark(std::vector<Remark>& remarks, analysis::Finding finding, const std::string& record);

/// What the rows of a scaling group lose against its baseline.
struct LossesOfGroup {
  const analysis::ScalingGroup* group = nullptr;
  analysis::Mode mode = analysis::Mode::weak;
  std::vector<analysis::EfficiencyLoss> rows;  ///< by workers: those with ratios
};

struct Conclusions {
  Conclusions() = default;
  Conclusions(Conclusions&&) = default;
  Conclusions(const Conclusions&) = delete;
  Conclusions& operator=(const Conclusions&) = delete;

  std::span<const measure::Record> records;
  std::vector<analysis::Cell> cells;
  std::vector<analysis::ScalingGroup> weak, strong;
  std::vector<LossesOfGroup> losses;  ///< of groups that have a row with ratios, weak before strong
  std::vector<analysis::Sweep> sweeps;
  std::vector<analysis::CellGroup>
      subjects;  ///< one for each model and data set, named where there are several
  std::optional<analysis::Convergence> convergence;
  std::vector<Remark> remarks;

  /// Of a kind of cell ("sweep", "scale", "converge"): how many records there are, and how many of them were
  /// not measured to their end because the study was stopped.
  struct Stopped {
    long records = 0, unmeasured = 0;
  };
  [[nodiscard]] Stopped stopped(std::string_view kind) const;
  /// Of a study: all that it measures.
  [[nodiscard]] Stopped stopped_study() const;

  [[nodiscard]] const std::vector<analysis::ScalingGroup>& scaling(analysis::Mode mode) const {
    return mode == analysis::Mode::weak ? weak : strong;
  }
};

/// Precondition: records is not empty.
[[nodiscard]] Conclusions conclude(std::span<const measure::Record> records);

/// The row that the answers are given for, and its group.
struct Headline {
  const analysis::ScalingGroup* group = nullptr;
  const analysis::ScalingRow* row = nullptr;
};
/// The most workers of the subject that have a core each (else the most), at the batch of the first sweep's
/// knee where it was scaled, else at the largest batch; weak before strong; of several set-ups the first, of
/// several versions the last. Null without scaling.
[[nodiscard]] Headline headline(const Conclusions& conclusions, std::string_view subject);

}  // namespace paceline::report

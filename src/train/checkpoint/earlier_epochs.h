#pragma once

/// Joins the epochs of a resumed training with those of the runs before it.

#include <optional>
#include <string>
#include <vector>

#include "measure/record.h"
#include "train/checkpoint/resume_point.h"

namespace paceline::train {

struct Earlier {
  std::vector<measure::EpochRecord> epochs;
  std::vector<measure::EvaluatedUpdateRecord> evaluations;
  /// The runs that were lost, the previous one last: its `rebuild_s` counts from `lost_at_s`.
  std::vector<measure::RestartRecord> restarts;
  std::optional<double>
      lost_at_s;  ///< UTC, seconds since 1970; none: the previous run was not lost, or it is unknown
  std::vector<measure::ChangeRecord> changes;  ///< of earlier resumes, and of this one
  std::vector<measure::RollbackRecord> rollbacks;
  std::int64_t test_reads = 0;  ///< images of the test set that those runs have read
  std::string note;  ///< how the previous run was lost, and what of it is repeated; "" if it was not lost
  /// Why the record beside the checkpoint cannot be used; this run's record then begins with its own epochs.
  std::string damage;
};

/// Reads what the training has done before, from the record beside its checkpoint, or from kLostRecord in
/// options.out after a restart without a checkpoint. How the previous run was lost is read from its process
/// 0's record, else from the last words of other processes, else from the launcher (options.lost). How much
/// was lost is read from the count of updates (schedule.h), of `global_batch` samples each. A damaged
/// file counts as missing: its contents are lost, but the training continues.
[[nodiscard]] Earlier read_earlier(const Options& options, const std::optional<ResumePoint>& resume,
                                   std::int64_t global_batch);

/// The epochs before the resume, followed by those of this run. An epoch that the resume interrupted becomes
/// one again if its first part is known; otherwise it stays incomplete, as its `steps` show.
[[nodiscard]] std::vector<measure::EpochRecord> joined(std::vector<measure::EpochRecord> earlier,
                                                       std::vector<measure::EpochRecord> here);

}  // namespace paceline::train

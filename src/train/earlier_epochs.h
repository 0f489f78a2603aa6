#pragma once

/// A resumed training and the one before it are one training: its epochs, joined.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "measure/record.h"
#include "train/resume_point.h"

namespace paceline::train {

struct Earlier {
  std::vector<measure::EpochRecord> epochs;
  /// The runs that were lost, this one's predecessor last: its `rebuild_s` counts from `lost_at_s`.
  std::vector<measure::RestartRecord> restarts;
  std::optional<double>
      lost_at_s;  ///< UTC, seconds since 1970; none: the run before was not lost, or unknown
  std::vector<measure::ChangeRecord> changes;  ///< those of resumes before this one, and its own
  std::vector<measure::RollbackRecord> rollbacks;
  std::int64_t test_reads = 0;  ///< images that those runs read of the test set
  std::string note;  ///< how the run before was lost, and what of it is done again; "" when it was not
  /// The record beside the checkpoint cannot be used, and why: this run's then begins with its own epochs.
  std::string damage;
};

/// What the training had already behind it, from the record beside its checkpoint, or from kLostRecord in
/// options.out after a restart that found no checkpoint. How it was lost is what its process 0 wrote, else
/// the last words of the others, else what the launcher saw (options.lost); how much was, its own count
/// of updates (update_count.h) of `global_batch` samples each, where nobody said it.
/// One of these files that is damaged is as good as none: what it says is lost, the training is not.
[[nodiscard]] Earlier read_earlier(const Options& options, const std::optional<ResumePoint>& resume,
                                   std::int64_t global_batch);

/// What a resumed training had behind it, then what this run did. The epoch that the resume cut is one again
/// where its first part is known; otherwise it stays a part, as its `steps` say.
[[nodiscard]] std::vector<measure::EpochRecord> joined(std::vector<measure::EpochRecord> earlier,
                                                       std::vector<measure::EpochRecord> here);

}  // namespace paceline::train

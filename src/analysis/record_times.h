#pragma once

/// What one record says of its steps and epochs.

#include <vector>

#include "measure/record.h"

namespace paceline::analysis {

/// The steps of one record, each the mean over ranks.
[[nodiscard]] std::vector<double> step_seconds(const measure::Record& record);
/// Training time of each whole epoch (steps_per_epoch updates), without evaluation and checkpoints: those
/// that the record lists, else a window of that length; empty for any other window. An epoch of which only a
/// part was timed is not among them.
[[nodiscard]] std::vector<double> epoch_seconds(const measure::Record& record);
/// Training time up to the end of each epoch of a training, without evaluation and checkpoints. Empty where
/// the record lacks the seconds of a part, as after a resume whose first part's record is gone.
[[nodiscard]] std::vector<double> seconds_to_epochs(const measure::Record& record);

/// Epochs of training behind the end of `epoch`: half of one is 0.5, though its entry is the first.
[[nodiscard]] double epochs_done(const measure::Record& record, const measure::EpochRecord& epoch);

}  // namespace paceline::analysis

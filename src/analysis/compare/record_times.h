#pragma once

/// Computes times of steps and epochs, and the bytes that a step reduces, from one record.

#include <cstdint>
#include <vector>

#include "measure/record.h"

namespace paceline::analysis {

/// The steps of a record that have times, each the mean over ranks.
[[nodiscard]] std::vector<double> step_seconds(const measure::Record& record);
/// Sum over all steps of the rank's window, those without a time of their own included.
[[nodiscard]] double seconds_of_steps(const measure::RankRecord& rank);
/// Training time of each whole epoch (steps_per_epoch updates), without evaluation and checkpoints: the
/// epochs that the record lists, else a window of that length; empty for any other window. An epoch that was
/// timed only in part is left out.
[[nodiscard]] std::vector<double> epoch_seconds(const measure::Record& record);
/// Training time until the end of each epoch, without evaluation and checkpoints. Empty if the record lacks
/// the seconds of a part, as after a resume when the earlier record is missing.
[[nodiscard]] std::vector<double> seconds_to_epochs(const measure::Record& record);

/// Epochs of training until the end of `epoch`: half of one is 0.5, though its entry is the first.
[[nodiscard]] double epochs_done(const measure::Record& record, const measure::EpochRecord& epoch);

/// Bytes that one step reduces in its buckets: the gradients, and on devices its votes. 0 without buckets.
[[nodiscard]] std::int64_t bucket_bytes(const measure::Record& record);

}  // namespace paceline::analysis

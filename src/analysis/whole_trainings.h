#pragma once

/// Whole trainings on different numbers of workers: how much faster, and what the accuracy says to it.
///
/// A speedup of an epoch is one of throughput; that of a training to the same accuracy is what the user gets,
/// since more workers mostly mean a larger batch, fewer updates, and another accuracy after as many epochs.

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/converge.h"
#include "analysis/interval.h"

namespace paceline::analysis {

struct WholeTraining {
  std::size_t variant = 0;  ///< in Convergence::variants
  /// Of its times against the baseline's: where they may not stand in a ratio no speedup is given.
  Verdict times;
  bool as_many_epochs = true;  ///< as the baseline; else its total is of another amount of work
  Estimate epoch_s;            ///< over the whole epochs of all seeds; without evaluation and checkpoints
  Estimate total_s;            ///< over seeds
  /// Training time until the accuracy was first at the common one, over the seeds that reached it; n = 0
  /// where one of them did not.
  Estimate to_accuracy_s;
  /// The most epochs between two looks at that accuracy, of all seeds; 0: it was never looked at. One that is
  /// looked at more seldom than another can only be seen to reach it later.
  std::int64_t looked_every = 0;
  // Baseline's time over this one's; nothing for the baseline, and where the two may not be compared. That of
  // the totals only at equal epochs.
  std::optional<Estimate> epoch_speedup, total_speedup, to_accuracy_speedup;
  /// Speedup of an epoch, of the total, over the workers that did the baseline's work times more.
  std::optional<Estimate> epoch_efficiency, total_efficiency;
};

struct WholeTrainings {
  std::size_t baseline = 0;  ///< in `trainings`
  std::vector<WholeTraining> trainings;
  /// The highest accuracy that every training reached whose last one is not clearly below the baseline's.
  /// Nothing unless every seed has accuracies by epoch of one part.
  std::optional<double> common_accuracy;
  bool of_validation =
      false;  ///< the common accuracy: of the validation part, where the test set was read last
};

/// Nothing unless trainings of at least two numbers of workers can be compared with the baseline. The
/// baseline is that of `convergence` if it has the fewest workers, else the first with the fewest.
[[nodiscard]] std::optional<WholeTrainings> whole_trainings(const Convergence& convergence);

}  // namespace paceline::analysis

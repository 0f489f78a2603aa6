#pragma once

/// Compares whole trainings on different numbers of workers: how much faster they are, and at what accuracy.
///
/// An epoch's speedup is one of throughput. Users care about the time to the same accuracy, since more
/// workers usually mean a larger batch, fewer updates, and another accuracy after equally many epochs.

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/compare/interval.h"
#include "analysis/trainings/converge.h"

namespace paceline::analysis {

struct WholeTraining {
  std::size_t variant = 0;  ///< index in Convergence::variants
  /// Of its times compared with the baseline's; if they may not form a ratio there is no speedup.
  Verdict times;
  bool as_many_epochs = true;  ///< as the baseline; else its total time is for another amount of work
  Estimate epoch_s;            ///< over the whole epochs of all seeds; without evaluation and checkpoints
  Estimate total_s;            ///< over seeds
  /// Training time until the accuracy first reached the common one, over the seeds; n = 0 if one of them
  /// never did.
  Estimate to_accuracy_s;
  /// The largest number of epochs between two evaluations of that accuracy, over all seeds; 0: never
  /// evaluated. A training that is evaluated less often than another can only be seen to reach it later.
  std::int64_t looked_every = 0;
  // The baseline's time over this one's; nothing for the baseline, and if the two may not be compared. That
  // of the totals only at equal epochs.
  std::optional<Estimate> epoch_speedup, total_speedup, to_accuracy_speedup;
  /// Speedups of an epoch and of the total, divided by the ratio of workers.
  std::optional<Estimate> epoch_efficiency, total_efficiency;
};

struct WholeTrainings {
  std::size_t baseline = 0;  ///< in `trainings`
  std::vector<WholeTraining> trainings;
  /// The highest accuracy that was reached by every training whose last accuracy is not clearly below the
  /// baseline's. Nothing unless every seed has accuracies by epoch on one set.
  std::optional<double> common_accuracy;
  bool of_validation =
      false;  ///< the common accuracy is on the validation set, since the test set was read last
};

/// Nothing unless trainings on at least two numbers of workers can be compared with the baseline. The
/// baseline is that of `convergence` if it has the fewest workers, else the first with the fewest.
[[nodiscard]] std::optional<WholeTrainings> whole_trainings(const Convergence& convergence);

}  // namespace paceline::analysis

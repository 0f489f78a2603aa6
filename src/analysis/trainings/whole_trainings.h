#pragma once

/// Compares whole trainings on different numbers of workers: how much faster they are, and at what accuracy.
///
/// An epoch's speedup is one of throughput. Users care about the time to the same accuracy, since more
/// workers usually mean a larger batch, fewer updates, and another accuracy after equally many epochs.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/compare/interval.h"
#include "analysis/trainings/converge.h"
#include "measure/record.h"

namespace paceline::analysis {

// Follows a training epoch by epoch (its course), as means over seeds. Finds overfitting, which is where the
// held-out loss begins to rise while the training loss falls, and how steady the last epochs are.

/// One epoch, as means over seeds. A value that is missing for one seed or more is missing here.
struct CourseEpoch {
  std::int64_t updates = 0;
  double epochs = 0;  ///< 0.5 for half an epoch
  double train_loss = 0, train_accuracy = 0;
  std::optional<double> test_loss, test_accuracy, validation_loss, validation_accuracy;
};

/// The held-out loss rises while the training loss keeps falling.
struct Overfitting {
  double from_epoch = 0;                  ///< the first after the lowest held-out loss
  double lowest_loss = 0, last_loss = 0;  ///< held-out loss at its lowest epoch and at the last one
  /// Training loss at the epoch of the lowest held-out loss and at the last one.
  double train_loss_then = 0, train_loss_at_end = 0;
  /// Held-out accuracy at these two epochs. It often still rises, although the held-out loss rises.
  std::optional<double> accuracy_then, accuracy_at_end;
};

struct Course {
  std::vector<CourseEpoch> epochs;
  bool has_validation = false;  ///< "held out" is the validation set, else the test set
  std::optional<Overfitting> overfitting;
  /// Training minus held-out accuracy at the last epoch. Training accuracy is counted during the epoch, on
  /// augmented images, so in early epochs it may be below the held-out one.
  std::optional<double> gap;
  /// By how much the accuracy would differ if the training had ended an epoch earlier: the mean absolute
  /// difference of held-out accuracy between neighbouring epochs, over the last `steady_over` of them and all
  /// seeds.
  std::optional<double> unsteadiness;
  int steady_over = 0;
};

/// A rise of the held-out loss counts as overfitting if it is at least this fraction of the lowest loss ...
inline constexpr double kClearRise = 0.02;
/// ... and if at least so many epochs follow the one with the lowest loss.
inline constexpr int kFewestEpochsAfter = 2;

/// The course of one configuration. Only epochs that all seeds have are in it.
///
/// Requires  `seeds`, a record for each seed, is not empty
[[nodiscard]] Course course(std::span<const measure::Record* const> seeds);

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

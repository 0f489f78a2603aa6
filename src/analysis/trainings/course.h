#pragma once

/// Follows a training epoch by epoch (its course), as means over seeds. Finds overfitting, which is where the
/// held-out loss begins to rise while the training loss falls, and how steady the last epochs are.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "measure/record.h"

namespace paceline::analysis {

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

}  // namespace paceline::analysis

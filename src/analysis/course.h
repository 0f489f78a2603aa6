#pragma once

/// Follows trainings epoch by epoch, and finds overfitting (where training and held-out figures part) and how
/// steady the last epochs are.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "measure/record.h"

namespace paceline::analysis {

/// One epoch, as means over seeds; a figure that any seed lacks is missing.
struct CourseEpoch {
  std::int64_t updates = 0;
  double epochs = 0;  ///< 0.5 for half an epoch
  double train_loss = 0, train_accuracy = 0;
  std::optional<double> test_loss, test_accuracy, validation_loss, validation_accuracy;
};

/// The held-out loss rises while the training loss keeps falling.
struct Overfitting {
  double from_epoch = 0;                              ///< the first after the lowest held-out loss
  double lowest_loss = 0, last_loss = 0;              ///< held out
  double train_loss_then = 0, train_loss_at_end = 0;  ///< training, at the same two epochs
  /// Held-out accuracy at these two epochs; it often still rises while the loss rises too.
  std::optional<double> accuracy_then, accuracy_at_end;
};

struct Course {
  std::vector<CourseEpoch> epochs;
  bool has_validation = false;  ///< "held out" is the validation set, else the test set
  std::optional<Overfitting> overfitting;
  /// Training minus held-out accuracy at the last epoch. Training accuracy is counted during the epoch, on
  /// augmented images, so in early epochs it may be below the held-out one.
  std::optional<double> gap;
  /// Mean change of the held-out accuracy between epochs over the last `steady_over` changes, mean over
  /// seeds: how much the accuracy would differ if the training had ended an epoch earlier.
  std::optional<double> unsteadiness;
  int steady_over = 0;
};

/// No overfitting: a rise of the held-out loss by less than this part of its lowest value, or one that only
/// the last epoch shows.
inline constexpr double kClearRise = 0.02;
inline constexpr int kFewestEpochsAfter = 2;

/// The course of one configuration's seeds; epochs that not all of them have are left out.
///
/// Requires  records is not empty
[[nodiscard]] Course course(std::span<const measure::Record* const> seeds);

}  // namespace paceline::analysis

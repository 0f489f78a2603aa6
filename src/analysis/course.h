#pragma once

/// How trainings went, epoch by epoch: where training and held-out images part, and how steady the end is.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "measure/record.h"

namespace paceline::analysis {

/// One epoch, as means over seeds; a figure that a seed lacks is missing.
struct CourseEpoch {
  std::int64_t updates = 0;
  double epochs = 0;  ///< of half an epoch 0.5
  double train_loss = 0, train_accuracy = 0;
  std::optional<double> test_loss, test_accuracy, validation_loss, validation_accuracy;
};

/// That the held-out loss rises while the training loss goes on falling.
struct Overfitting {
  double from_epoch = 0;                              ///< the first behind the lowest held-out loss
  double lowest_loss = 0, last_loss = 0;              ///< held out
  double train_loss_then = 0, train_loss_at_end = 0;  ///< training, at the same two epochs
  /// Held-out accuracy at these two epochs: it often rises on while the loss does too.
  std::optional<double> accuracy_then, accuracy_at_end;
};

struct Course {
  std::vector<CourseEpoch> epochs;
  bool has_validation = false;  ///< then that part is the held-out one, else the test set
  std::optional<Overfitting> overfitting;
  /// Training less held-out accuracy at the last epoch. Training accuracy is counted while the epoch trains,
  /// on images as augmented as they were: an early epoch's may be below the held-out one.
  std::optional<double> gap;
  /// Mean change of the held-out accuracy from one epoch to the next over the last `steady_over` changes,
  /// mean over seeds: how far an accuracy would lie elsewhere had the training ended an epoch earlier.
  std::optional<double> unsteadiness;
  int steady_over = 0;
};

/// A rise of the held-out loss by less than this part of its lowest is no overfitting, nor one that the last
/// epoch shows alone.
inline constexpr double kClearRise = 0.02;
inline constexpr int kFewestEpochsAfter = 2;

/// Of the seeds of one configuration; epochs that not all of them have are left out.
/// Precondition: records is not empty
[[nodiscard]] Course course(std::span<const measure::Record* const> seeds);

}  // namespace paceline::analysis

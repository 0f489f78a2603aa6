#pragma once

/// What a record says of a training besides its times: epochs, evaluations, target, use of the test set.
/// Comments name the case in which a figure is missing after "none:".

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace paceline::measure {

/// Squared norms of gradients in measured steps of an epoch. Both lists have one value for each `mean_of`
/// consecutive ones of these steps: their mean.
struct GradientSquares {
  std::int64_t every = 0;  ///< updates from one measured step to the next
  std::int64_t small_batch = 0, large_batch = 0;
  std::int64_t mean_of = 1;
  std::vector<double> small;  ///< mean over the small batches of a step
  std::vector<double> large;  ///< of the global batch
};

struct EpochRecord {
  std::int64_t epoch = 0;    ///< from 1
  std::int64_t updates = 0;  ///< since the start of the training
  /// Updates that `seconds` and the training figures cover: fewer than an epoch has if a resumed run covers
  /// only its end. None: an older record.
  std::optional<std::int64_t> steps = {};
  double seconds = 0;               ///< of training in this epoch, without evaluation
  double lr = 0;                    ///< at its last update
  double train_loss = 0;            ///< mean over the epoch's samples, augmented as in training
  double train_accuracy = 0;        ///< likewise
  std::optional<double> test_loss;  ///< mean over the whole test set
  std::optional<double> test_accuracy;
  /// The label is among the five largest logits; none with fewer than 20 classes, and in older records.
  std::optional<double> test_top_5 = {};
  std::optional<double> validation_loss;  ///< on the validation set, if there is one
  std::optional<double> validation_accuracy;
  std::optional<double> validation_top_5 = {};
  /// With --ema: of the averaged weights.
  std::optional<double> ema_test_loss = {}, ema_test_accuracy = {};
  std::optional<double> ema_validation_loss = {}, ema_validation_accuracy = {};
  /// With --clip-norm: mean and largest L2 norm of the gradients of the epoch's updates, before clipping, and
  /// how many of them were clipped.
  std::optional<double> gradient_norm = {}, largest_gradient_norm = {};
  std::optional<std::int64_t> clipped = {};
  /// With --noise-scale. None: a step was one batch alone, or too short for a measured step.
  std::optional<GradientSquares> gradient_squares = {};
};

/// How a training used its test set. Missing in older records and for timed windows.
struct TestSetRecord {
  std::string policy;  ///< --test-set: "last", "every", "never"
  /// Images of it that were read, counted where they are read, in all runs of this training together. Images
  /// that were read ahead and never evaluated (of a stopped run) count.
  std::int64_t reads = 0;
  /// For "last": the epoch whose weights were tested (from 1), and the result.
  std::optional<std::int64_t> epoch = {};
  std::optional<double> loss = {}, accuracy = {}, top_5 = {};
  std::optional<double> ema_loss = {}, ema_accuracy = {};  ///< with --ema: of that epoch's averaged weights
};

/// An evaluation of a training with --evaluate-steps or --target: on the validation set if there is one, else
/// on the test set.
struct EvaluatedUpdateRecord {
  std::int64_t update = 0;             ///< updates done
  std::int64_t samples = 0;            ///< that they trained, each as often as it was
  std::optional<double> seconds = {};  ///< of training until then; none: a part of it is not known
  double loss = 0, accuracy = 0;
};

/// The dynamic loss scale of a training in fp16.
struct LossScaleRecord {
  double scale = 0;           ///< at its end
  std::int64_t left_out = 0;  ///< updates that were left out because a gradient overflowed
};

/// The target of a training, and the first of its evaluations that reached it.
struct TargetRecord {
  std::string quantity;  ///< "accuracy" or "loss"
  double value = 0;
  std::optional<std::int64_t> update = {};  ///< none: it was not reached
  std::optional<double> seconds = {};       ///< as of that evaluation
};

}  // namespace paceline::measure

#pragma once

/// ValidationWatch decides from validation figures during a training: which epoch is the best, when a plateau
/// lowers the learning rate, and when early stopping ends the training.
///
/// The figures are the same bits on every rank, so all ranks decide alike without communication.

#include <cstdint>

#include "measure/record.h"
#include "train/given/options.h"

namespace paceline::train {

/// Everything that the decisions depend on. Checkpoints contain it, so a resumed training decides like an
/// uninterrupted one. Trivially copyable, since it is broadcast.
struct ValidationState {
  std::int64_t best_update = 0;  ///< updates done after the best epoch; 0: nothing was validated yet
  std::int64_t best_epoch = 0;   ///< from 1
  double best_accuracy = 0, best_loss = 0;
  std::int64_t last_epoch = 0;     ///< the last that was validated
  std::int64_t reduced_epoch = 0;  ///< the last after which a plateau lowered the learning rate
  std::int64_t reductions = 0;     ///< how often it did
};

/// Whether `epoch` is better than the best so far: more correct, or equally many with a lower loss. Of equal
/// epochs the first wins.
[[nodiscard]] bool is_better(const measure::EpochRecord& epoch, const ValidationState& state);

/// Threads  one, the worker's own
class ValidationWatch {
 public:
  ValidationWatch(const ScheduleOptions& schedule, int early_stopping)
      : schedule_(schedule), early_stopping_(early_stopping) {}

  void resume(const ValidationState& state) { state_ = state; }
  /// Adds an epoch's figures; an epoch without validation changes nothing. True if it is the best so far.
  bool see(const measure::EpochRecord& epoch);

  /// The factor on the learning rate: 1 except for --schedule plateau.
  [[nodiscard]] double rate_factor() const;
  /// Whether --early-stopping ends the training: its patience has passed since the best epoch.
  [[nodiscard]] bool is_over() const;
  [[nodiscard]] const ValidationState& state() const { return state_; }

 private:
  const ScheduleOptions schedule_;
  const int early_stopping_;
  ValidationState state_;
};

}  // namespace paceline::train

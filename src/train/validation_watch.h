#pragma once

/// What the validation part decides while a training goes on: which epoch is the best, when a plateau lowers
/// the learning rate, and when training longer is in vain (early stopping).
///
/// Validation figures are the same on every rank, bit for bit, and so are the decisions; nobody has to ask.

#include <cstdint>

#include "measure/record.h"
#include "train/options.h"

namespace paceline::train {

/// All that the decisions depend on. Checkpoints keep it, so a resumed training decides as the uninterrupted
/// one. Trivially copyable: it is broadcast.
struct ValidationState {
  std::int64_t best_update = 0;  ///< updates done after the best epoch; 0: nothing was validated yet
  std::int64_t best_epoch = 0;   ///< from 1
  double best_accuracy = 0, best_loss = 0;
  std::int64_t last_epoch = 0;     ///< the last that was validated
  std::int64_t reduced_epoch = 0;  ///< the last after which a plateau lowered the learning rate
  std::int64_t reductions = 0;     ///< how often it did
};

/// Whether `epoch` is better than the best so far: more correct, or as many with a lower loss. Of equals the
/// first stays.
[[nodiscard]] bool is_better(const measure::EpochRecord& epoch, const ValidationState& state);

/// Threads  one, the worker's own
class ValidationWatch {
 public:
  ValidationWatch(const ScheduleOptions& schedule, int early_stopping)
      : schedule_(schedule), early_stopping_(early_stopping) {}

  void resume(const ValidationState& state) { state_ = state; }
  /// Takes an epoch's figures into account; one without validation changes nothing. True when it is the best
  /// so far.
  bool see(const measure::EpochRecord& epoch);

  /// What the learning rate is multiplied with: 1 but for --schedule plateau.
  [[nodiscard]] double rate_factor() const;
  /// Whether --early-stopping ends the training: as many epochs as its patience lie behind the best one.
  [[nodiscard]] bool is_over() const;
  [[nodiscard]] const ValidationState& state() const { return state_; }

 private:
  const ScheduleOptions schedule_;
  const int early_stopping_;
  ValidationState state_;
};

}  // namespace paceline::train

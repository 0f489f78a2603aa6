#include "train/step/validation_watch.h"

#include <algorithm>
#include <cmath>

namespace paceline::train {

bool is_better(const measure::EpochRecord& epoch, const ValidationState& state) {
  if (!epoch.validation_accuracy || !epoch.validation_loss) return false;
  if (state.best_update == 0 || *epoch.validation_accuracy != state.best_accuracy)
    return state.best_update == 0 || *epoch.validation_accuracy > state.best_accuracy;
  return *epoch.validation_loss < state.best_loss;
}

bool ValidationWatch::see(const measure::EpochRecord& epoch) {
  if (!epoch.validation_accuracy) return false;
  state_.last_epoch = epoch.epoch;
  if (is_better(epoch, state_)) {
    state_.best_update = epoch.updates;
    state_.best_epoch = epoch.epoch;
    state_.best_accuracy = *epoch.validation_accuracy;
    state_.best_loss = *epoch.validation_loss;
    return true;
  }
  const bool reduces = schedule_.kind == ScheduleKind::plateau;
  if (reduces &&
      epoch.epoch - std::max(state_.best_epoch, state_.reduced_epoch) >= schedule_.plateau_patience) {
    state_.reduced_epoch = epoch.epoch;
    ++state_.reductions;
  }
  return false;
}

double ValidationWatch::rate_factor() const {
  if (state_.reductions == 0) return 1;
  return std::pow(schedule_.plateau_factor, static_cast<double>(state_.reductions));
}

bool ValidationWatch::is_over() const {
  return early_stopping_ > 0 && state_.best_update > 0 &&
         state_.last_epoch - state_.best_epoch >= early_stopping_;
}

}  // namespace paceline::train

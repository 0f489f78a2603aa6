#include "train/record/epoch_figures.h"

#include <utility>

#include "base/error.h"
#include "train/images/evaluate.h"

namespace paceline::train {

void EpochFigures::add(const StepFigures& step) {
  sums_ += step.local;
  seconds_ += step.seconds;
  lr_ = step.lr;
  if (!keeps_steps_) return;
  kept_.push_back({.update = step.update, .loss = 0, .lr = step.lr});
  losses_.push_back(step.local.loss);
}

void EpochFigures::add_skipped(double seconds, double lr) {
  ++skipped_;
  seconds_ += seconds;
  lr_ = lr;
}

void EpochFigures::forget() {
  sums_ = {};
  seconds_ = 0;
  skipped_ = 0;
  kept_.clear();
  losses_.clear();
}

double EpochFigures::mean_loss() const {
  base::expects(sums_.samples > 0, "the epoch has a step");
  return sums_.loss / static_cast<double>(sums_.samples);
}

measure::EpochRecord EpochFigures::close(comm::Communicator& communicator,
                                         std::vector<measure::StepRecord>& steps) {
  if (!losses_.empty()) communicator.all_reduce(losses_, comm::Reduce::sum);
  for (std::size_t i = 0; i < kept_.size(); ++i)
    kept_[i].loss = losses_[i] / static_cast<double>(global_batch_);
  steps.insert(steps.end(), kept_.begin(), kept_.end());
  kept_.clear();
  losses_.clear();

  const auto all = reduce_sums(std::exchange(sums_, {}), communicator);
  const auto samples = static_cast<double>(all.samples);
  return {.steps = all.samples / global_batch_ + std::exchange(skipped_, 0),
          .seconds = std::exchange(seconds_, 0),
          .lr = lr_,
          .train_loss = all.loss / samples,
          .train_accuracy = static_cast<double>(all.correct) / samples};
}

}  // namespace paceline::train

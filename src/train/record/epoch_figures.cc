#include "train/record/epoch_figures.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "base/error.h"
#include "measure/noise_scale.h"
#include "train/evaluate.h"

namespace paceline::train {

void RecentSteps::start(measure::Ledger& ledger) {
  ledger_ = &ledger;
  ledger.keep_latest(&spans_);
  spans_.clear();
  added_ = 0;
  steps_.clear();
  kept_ = {};
}

void RecentSteps::add(base::TimePoint begin, base::TimePoint end) {
  latest_[added_++ % kSteps] = {begin, end};
}

void RecentSteps::before_fold(CollectiveLog& gradients, CollectiveLog& statistics) {
  if (added_ == 0) return;
  (void)ledger_->totals();  // the end of the last step is booked
  steps_.clear();
  for (std::size_t i = added_ - std::min(added_, kSteps); i < added_; ++i)
    if (const Step& step = latest_[i % kSteps]; spans_.has_all_since(step.begin)) steps_.push_back(step);
  kept_ = {};
  if (steps_.empty()) return;
  gradients.keep_since(&kept_.gradients, steps_.front().begin);
  statistics.keep_since(&kept_.statistics, steps_.front().begin);
}

void RecentSteps::after_fold() {
  if (added_ == 0) return;
  added_ = 0;
  if (!steps_.empty()) kept_.phases = spans_.since(steps_.front().begin);
}

std::optional<measure::LastStepsRecord> RecentSteps::gather(comm::Communicator& communicator,
                                                            bool shares_clock, std::size_t collectives) {
  const ClockOffset offset = shares_clock ? ClockOffset{} : clock_offset(communicator);
  measure::RankSteps mine{.timeline = {.rank = communicator.rank(),
                                       .clock_error_s = offset.error_s,
                                       .spans = spans_of(kept_, offset.seconds, collectives)}};
  const auto add_time = [&](base::TimePoint time) {
    mine.steps_s.push_back(base::seconds(time.time_since_epoch()) - offset.seconds);
  };
  for (const Step& step : steps_) add_time(step.begin);
  if (!steps_.empty()) add_time(steps_.back().end);
  const auto ranks = comm::gather_at_first(communicator, mine);
  if (communicator.rank() != 0) return std::nullopt;
  return measure::last_steps(ranks, kSteps, shares_clock);
}

void EpochFigures::add(const StepFigures& step) {
  sums_ += step.local;
  seconds_ += step.seconds;
  lr_ = step.lr;
  // Infinite where fp16 overflowed: the device left the update out. It is so on every rank.
  const bool has_norm = rule_.clips() && std::isfinite(step.gradient_norm);
  if (has_norm) {
    norms_.sum += step.gradient_norm;
    norms_.largest = std::max(norms_.largest, step.gradient_norm);
    norms_.clipped += rule_.clip_factor(step.gradient_norm) < 1 ? 1 : 0;
    ++norms_.count;
  }
  if (step.squares && std::isfinite(step.squares->large)) {
    small_squares_.push_back(step.squares->small);
    large_squares_.push_back(step.squares->large);
  }
  if (!keeps_steps_) return;
  kept_.push_back({.update = step.update, .loss = 0, .lr = step.lr});
  if (has_norm) kept_.back().gradient_norm = step.gradient_norm;
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
  norms_ = {};
  small_squares_.clear();
  large_squares_.clear();
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
  measure::EpochRecord epoch{.steps = all.samples / global_batch_ + std::exchange(skipped_, 0),
                             .seconds = std::exchange(seconds_, 0),
                             .lr = lr_,
                             .train_loss = all.loss / samples,
                             .train_accuracy = static_cast<double>(all.correct) / samples};
  if (const Norms norms = std::exchange(norms_, {}); norms.count > 0) {
    epoch.gradient_norm = norms.sum / static_cast<double>(norms.count);
    epoch.largest_gradient_norm = norms.largest;
    epoch.clipped = norms.clipped;
  }
  if (!large_squares_.empty()) {
    communicator.all_reduce(small_squares_, comm::Reduce::sum);
    auto squares = no_squares_.value();
    squares.small = std::exchange(small_squares_, {});
    squares.large = std::exchange(large_squares_, {});
    epoch.gradient_squares = measure::with_few_values(std::move(squares));
  }
  return epoch;
}

}  // namespace paceline::train

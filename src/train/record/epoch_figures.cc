#include "train/record/epoch_figures.h"

#include <algorithm>
#include <cmath>
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
  added_.sums += step.local;
  added_.seconds += step.seconds;
  lr_ = step.lr;
  // Infinite where fp16 overflowed: the device left the update out. It is so on every rank.
  const bool has_norm = rule_.clips() && std::isfinite(step.gradient_norm);
  if (has_norm) {
    Norms& norms = added_.norms;
    norms.sum += step.gradient_norm;
    norms.largest = std::max(norms.largest, step.gradient_norm);
    norms.clipped += rule_.clip_factor(step.gradient_norm) < 1 ? 1 : 0;
    ++norms.count;
  }
  if (step.squares && std::isfinite(step.squares->large)) {
    added_.small_squares.push_back(step.squares->small);
    added_.large_squares.push_back(step.squares->large);
  }
  if (!keeps_steps_) return;
  added_.kept.push_back({.update = step.update, .loss = 0, .lr = step.lr});
  if (has_norm) added_.kept.back().gradient_norm = step.gradient_norm;
  added_.losses.push_back(step.local.loss);
}

void EpochFigures::add_skipped(double seconds, double lr) {
  ++added_.skipped;
  added_.seconds += seconds;
  lr_ = lr;
}

double EpochFigures::mean_loss() const {
  base::expects(added_.sums.samples > 0, "the epoch has a step");
  return added_.sums.loss / static_cast<double>(added_.sums.samples);
}

measure::EpochRecord EpochFigures::close(comm::Communicator& communicator,
                                         std::vector<measure::StepRecord>& steps) {
  Added added = std::exchange(added_, {});
  if (!added.losses.empty()) communicator.all_reduce(added.losses, comm::Reduce::sum);
  for (std::size_t i = 0; i < added.kept.size(); ++i)
    added.kept[i].loss = added.losses[i] / static_cast<double>(global_batch_);
  steps.insert(steps.end(), added.kept.begin(), added.kept.end());

  const auto all = reduce_sums(added.sums, communicator);
  const auto samples = static_cast<double>(all.samples);
  measure::EpochRecord epoch{.steps = all.samples / global_batch_ + added.skipped,
                             .seconds = added.seconds,
                             .lr = lr_,
                             .train_loss = all.loss / samples,
                             .train_accuracy = static_cast<double>(all.correct) / samples};
  if (const Norms& norms = added.norms; norms.count > 0) {
    epoch.gradient_norm = norms.sum / static_cast<double>(norms.count);
    epoch.largest_gradient_norm = norms.largest;
    epoch.clipped = norms.clipped;
  }
  if (!added.large_squares.empty()) {
    communicator.all_reduce(added.small_squares, comm::Reduce::sum);
    auto squares = no_squares_.value();
    squares.small = std::move(added.small_squares);
    squares.large = std::move(added.large_squares);
    epoch.gradient_squares = measure::with_few_values(std::move(squares));
  }
  return epoch;
}

}  // namespace paceline::train

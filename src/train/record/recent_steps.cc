#include "train/record/recent_steps.h"

#include <algorithm>
#include <span>

#include "train/record/clock_offset.h"

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
  auto timelines = gather_timelines(
      communicator, {.clock_error_s = offset.error_s, .spans = spans_of(kept_, offset.seconds, collectives)});
  struct Times {
    std::size_t count = 0;
    std::array<double, kSteps + 1> seconds{};
  };
  Times mine;
  const auto add_time = [&](base::TimePoint time) {
    mine.seconds[mine.count++] = base::seconds(time.time_since_epoch()) - offset.seconds;
  };
  for (const Step& step : steps_) add_time(step.begin);
  if (!steps_.empty()) add_time(steps_.back().end);
  std::vector<Times> all(static_cast<std::size_t>(communicator.size()));
  communicator.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  if (communicator.rank() != 0) return std::nullopt;
  std::vector<measure::RankSteps> ranks;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const auto& times = all[rank];
    ranks.push_back({.timeline = std::move(timelines[rank]),
                     .steps_s = {times.seconds.begin(),
                                 times.seconds.begin() + static_cast<std::ptrdiff_t>(times.count)}});
  }
  return measure::last_steps(ranks, kSteps, shares_clock);
}

}  // namespace paceline::train

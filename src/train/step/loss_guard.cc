#include "train/step/loss_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace paceline::train {

LossGuard::LossGuard(OnNan on_nan, int classes, std::int64_t global_batch, bool watches)
    : on_nan_(on_nan),
      guess_(std::log(std::max(2, classes))),
      global_batch_(static_cast<double>(global_batch)),
      watches_(watches) {}

double LossGuard::bound() const {
  if (state_.seen == 0) return std::numeric_limits<double>::infinity();
  return std::max(kOfLowest * state_.lowest, kOfGuess * guess_);
}

void LossGuard::take(double loss) {
  constexpr auto kWindow = static_cast<std::int64_t>(GuardState::kWindow);
  state_.losses[static_cast<std::size_t>(state_.seen % kWindow)] = loss;
  ++state_.seen;
  auto sorted = state_.losses;
  const auto count = std::min(state_.seen, kWindow);
  const auto middle = sorted.begin() + count / 2;  // for an even count the upper of the two
  std::nth_element(sorted.begin(), middle, sorted.begin() + count);
  state_.lowest = state_.seen == 1 ? *middle : std::min(state_.lowest, *middle);
}

Verdict LossGuard::see(const Votes& all) {
  last_loss_ = all.loss / global_batch_;
  bad_before_ = state_.above;
  if (!watches_) return all.not_finite ? Verdict::diverged : Verdict::good;
  if (!all.not_finite && last_loss_ <= bound()) {
    take(last_loss_);
    state_.above = state_.skipped_in_row = 0;
    return Verdict::good;
  }
  if (on_nan_ == OnNan::skip) {
    bad_before_ = state_.skipped_in_row;
    if (state_.skipped_in_row == kMostSkips) return Verdict::diverged;
    ++state_.skipped;
    ++state_.skipped_in_row;
    return Verdict::skipped;
  }
  if (all.not_finite) return Verdict::diverged;
  ++state_.above;
  return state_.above < kSteps ? Verdict::above : Verdict::diverged;
}

double LossGuard::rate_factor() const { return std::pow(kRateFactor, static_cast<double>(state_.rollbacks)); }

std::string LossGuard::what() const {
  return fmt::format(
      "the loss is {:.4g}, above {:.4g} ({:g} times the lowest median of {} steps, {:.4g}, and "
      "{:g} times a uniform guess, {:.4g})",
      last_loss_, bound(), kOfLowest, GuardState::kWindow, state_.lowest, kOfGuess, guess_);
}

}  // namespace paceline::train

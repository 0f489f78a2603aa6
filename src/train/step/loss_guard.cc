#include "train/step/loss_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace paceline::train {

namespace {

constexpr std::size_t kFlags = 3;
constexpr int kBitsOfPart = 12;
constexpr int kBitsOfFraction = 24;
constexpr double kMostLoss = 0x1p35;  ///< 59 bits, which five parts hold

/// Whether `epoch` is better than the best so far: more correct, or equally many with a lower loss. Of equal
/// epochs the first wins.
bool is_better(const measure::EpochRecord& epoch, const ValidationState& state) {
  if (!epoch.validation_accuracy || !epoch.validation_loss) return false;
  if (state.best_update == 0) return true;
  if (*epoch.validation_accuracy != state.best_accuracy)
    return *epoch.validation_accuracy > state.best_accuracy;
  return *epoch.validation_loss < state.best_loss;
}

}  // namespace

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
  if (schedule_.kind == ScheduleKind::plateau &&
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

std::array<float, kVoteFloats> as_floats(const Votes& votes) {
  std::array<float, kVoteFloats> floats{votes.stop ? 1.0f : 0.0f, votes.not_finite ? 1.0f : 0.0f,
                                        votes.enough ? 1.0f : 0.0f};
  const double loss = std::isfinite(votes.loss) ? std::clamp(votes.loss, 0.0, kMostLoss) : 0;
  auto left = static_cast<std::uint64_t>(std::llround(std::ldexp(loss, kBitsOfFraction)));
  for (std::size_t part = kFlags; part < kVoteFloats; ++part, left >>= kBitsOfPart)
    floats[part] = static_cast<float>(left & ((std::uint64_t{1} << kBitsOfPart) - 1));
  return floats;
}

Votes votes_from(std::span<const float> floats) {
  base::expects(floats.size() == kVoteFloats, "votes have a fixed number of floats");
  Votes votes{.stop = floats[0] > 0, .not_finite = floats[1] > 0, .enough = floats[2] > 0};
  for (std::size_t part = kVoteFloats; part-- > kFlags;)
    votes.loss = std::ldexp(votes.loss, kBitsOfPart) + static_cast<double>(floats[part]);
  votes.loss = std::ldexp(votes.loss, -kBitsOfFraction);
  return votes;
}

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

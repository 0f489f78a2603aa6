#include "measure/ledger.h"

#include <algorithm>
#include <utility>

namespace paceline::measure {

std::string_view name(Phase phase) {
  constexpr std::array<std::string_view, kPhases> kNames{
      "data wait",    "copy",   "forward",    "backward",   "exposed transfer",
      "exposed wait", "update", "evaluation", "checkpoint", "other"};
  return kNames[static_cast<std::size_t>(phase)];
}

std::vector<PhaseSpan> LatestSpans::since(base::TimePoint time) const {
  std::vector<PhaseSpan> found;
  const std::size_t first = pushed_ > spans_.size() ? pushed_ - spans_.size() : 0;
  for (std::size_t i = first; i < pushed_; ++i)
    if (const auto& span = spans_[i & (spans_.size() - 1)]; span.end > time) found.push_back(span);
  return found;
}

bool LatestSpans::has_all_since(base::TimePoint time) const {
  // The oldest span that is kept begins where the last removed one ended.
  return pushed_ <= spans_.size() || spans_[pushed_ & (spans_.size() - 1)].begin <= time;
}

void Ledger::start() {
  seconds_ = {};
  current_ = Phase::other;
  since_ = base::Clock::now();
}

void Ledger::add(Phase phase, base::TimePoint until) {
  seconds_[static_cast<std::size_t>(phase)] += base::seconds(until - since_);
  if (spans_ != nullptr && spans_->size() < most_spans_) spans_->push_back({phase, since_, until});
  if (latest_ != nullptr) latest_->push({phase, since_, until});
  since_ = until;
}

Phase Ledger::enter(Phase phase) {
  add(current_, base::Clock::now());
  return std::exchange(current_, phase);
}

base::TimePoint Ledger::book(Phase phase, base::TimePoint until) {
  until = std::min(until, base::Clock::now());
  if (until > since_) add(phase, until);
  return since_;
}

void Ledger::keep_spans(std::vector<PhaseSpan>* spans, std::size_t most) {
  spans_ = spans;
  most_spans_ = most;
}

void Ledger::move(Phase from, Phase to, double seconds) {
  // Never more than was booked: with a negative phase the sum would still be right, which would hide the
  // mistake.
  const double moved = std::clamp(seconds, 0.0, seconds_[static_cast<std::size_t>(from)]);
  seconds_[static_cast<std::size_t>(from)] -= moved;
  seconds_[static_cast<std::size_t>(to)] += moved;
}

PhaseSeconds Ledger::totals() {
  enter(current_);
  return seconds_;
}

}  // namespace paceline::measure

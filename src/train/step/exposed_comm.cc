#include "train/step/exposed_comm.h"

#include <algorithm>
#include <span>

namespace paceline::train {

void CollectiveLog::begin_blocked() { blocked_.push_back({base::Clock::now(), {}}); }

void CollectiveLog::end_blocked() {
  blocked_.back().end = base::Clock::now();
  blocked_s_ += base::seconds(blocked_.back().end - blocked_.back().begin);
}

void CollectiveLog::add_blocked(base::TimePoint begin, base::TimePoint end) {
  blocked_.push_back({begin, end});
}

void CollectiveLog::clear() {
  timings_.clear();
  blocked_.clear();
  blocked_s_ = 0;
}

void CollectiveLog::run_exposed(measure::Ledger& ledger, const std::function<void()>& collective) {
  const measure::InPhase exposed(ledger, measure::Phase::exposed_transfer);
  begin_blocked();
  const auto posted = base::Clock::now();
  collective();
  end_blocked();
  timings_.push_back({.posted = posted, .done = base::Clock::now()});
}

std::vector<measure::CommunicationTime> CollectiveLog::fold(comm::Communicator& communicator,
                                                            measure::Ledger& ledger,
                                                            measure::RankRecord& rank) {
  if (timings_.empty()) return {};  // the same on every rank
  const auto origin = timings_.front().posted;
  const auto since = [&](base::TimePoint time) { return base::seconds(time - origin); };
  std::vector<measure::CollectiveTimes> collectives;
  for (const auto& timing : timings_) collectives.push_back({since(timing.posted), since(timing.done)});
  std::vector<measure::Interval> blocked;
  for (const auto& interval : blocked_) blocked.push_back({since(interval.begin), since(interval.end)});

  std::vector<double> transfer;
  for (const auto& turn : measure::turns(collectives)) transfer.push_back(turn.length());
  communicator.all_reduce(transfer, comm::Reduce::min);

  auto times = measure::communication_times(collectives, transfer, blocked);
  const auto total = measure::sum(times);
  rank.communication_s += total.total;
  rank.transfer_s += total.transfer;
  rank.late_peer_s += total.late_peer;
  ledger.move(measure::Phase::exposed_transfer, measure::Phase::exposed_wait, total.exposed_wait);

  const auto keep_from = [&](std::ptrdiff_t first, Kept& kept) {
    const auto rest = [first](auto& list) {
      return std::span(list).subspan(static_cast<std::size_t>(first));
    };
    kept.timings.insert(kept.timings.end(), timings_.begin() + first, timings_.end());
    const double begin = base::seconds(origin.time_since_epoch());
    for (const auto& wait : measure::exposed_waits(rest(collectives), rest(transfer), blocked))
      kept.waits.push_back({begin + wait.begin, begin + wait.end});
  };
  if (kept_ != nullptr && kept_->timings.size() + timings_.size() <= most_kept_) keep_from(0, *kept_);
  if (latest_ != nullptr) {
    const auto first = std::ranges::partition_point(
        timings_, [&](const comm::Timing& timing) { return timing.posted < latest_since_; });
    *latest_ = {};
    keep_from(first - timings_.begin(), *latest_);
    latest_ = nullptr;
  }
  clear();
  return times;
}

void CollectiveLog::keep_since(Kept* kept, base::TimePoint since) {
  latest_ = kept;
  latest_since_ = since;
}

void CollectiveLog::keep_timings(Kept* kept, std::size_t most) {
  kept_ = kept;
  most_kept_ = most;
}

}  // namespace paceline::train

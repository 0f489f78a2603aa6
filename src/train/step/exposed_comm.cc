#include "train/step/exposed_comm.h"

#include <algorithm>

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

void CollectiveLog::sum_exposed(comm::Communicator& communicator, measure::Ledger& ledger,
                                std::span<double> values, WorkerResult& result) {
  const measure::InPhase exposed(ledger, measure::Phase::exposed_transfer);
  begin_blocked();
  const auto posted = base::Clock::now();
  communicator.all_reduce(values, comm::Reduce::sum);
  end_blocked();
  timings_.push_back({.posted = posted, .done = base::Clock::now()});
  result.norm_bytes += static_cast<std::int64_t>(values.size_bytes());
  ++result.norm_collectives;
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

  if (kept_ != nullptr && kept_->timings.size() + timings_.size() <= most_kept_) {
    kept_->timings.insert(kept_->timings.end(), timings_.begin(), timings_.end());
    const double begin = base::seconds(origin.time_since_epoch());
    for (const auto& wait : measure::exposed_waits(collectives, transfer, blocked))
      kept_->waits.push_back({begin + wait.begin, begin + wait.end});
  }
  if (latest_ != nullptr) {
    const auto first =
        std::partition_point(timings_.begin(), timings_.end(),
                             [&](const comm::Timing& timing) { return timing.posted < latest_since_; }) -
        timings_.begin();
    const auto from = [first](auto& list) {
      return std::span(list).subspan(static_cast<std::size_t>(first));
    };
    latest_->timings.assign(timings_.begin() + first, timings_.end());
    latest_->waits.clear();
    const double begin = base::seconds(origin.time_since_epoch());
    for (const auto& wait : measure::exposed_waits(from(collectives), from(transfer), blocked))
      latest_->waits.push_back({begin + wait.begin, begin + wait.end});
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

#include "measure/spans.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace paceline::measure {
namespace {

/// How much of `part` lies inside the `blocked` intervals.
double inside(Interval part, std::span<const Interval> blocked) {
  // The first interval that ends after `part` begins; those before it cannot meet it.
  auto at = std::partition_point(blocked.begin(), blocked.end(),
                                 [&](const Interval& interval) { return interval.end <= part.begin; });
  double seconds = 0;
  for (; at != blocked.end() && at->begin < part.end; ++at)
    seconds += Interval{std::max(part.begin, at->begin), std::min(part.end, at->end)}.length();
  return seconds;
}

}  // namespace

std::vector<Interval> turns(std::span<const CollectiveTimes> collectives) {
  std::vector<Interval> result;
  result.reserve(collectives.size());
  double previous_done = -std::numeric_limits<double>::infinity();
  for (const CollectiveTimes& collective : collectives) {
    const double begin = std::max(collective.posted, previous_done);
    previous_done = std::max(previous_done, collective.done);
    result.push_back({begin, std::max(begin, collective.done)});
  }
  return result;
}

std::vector<double> transfers(std::span<const std::vector<double>> turn_seconds) {
  if (turn_seconds.empty()) return {};
  std::vector<double> shortest = turn_seconds[0];
  for (const auto& rank : turn_seconds.subspan(1)) {
    base::expects(rank.size() == shortest.size(), "every rank has the same collectives");
    for (std::size_t i = 0; i < shortest.size(); ++i) shortest[i] = std::min(shortest[i], rank[i]);
  }
  return shortest;
}

CommunicationTime& CommunicationTime::operator+=(const CommunicationTime& other) {
  total += other.total;
  transfer += other.transfer;
  late_peer += other.late_peer;
  exposed_transfer += other.exposed_transfer;
  exposed_wait += other.exposed_wait;
  return *this;
}

std::vector<CommunicationTime> communication_times(std::span<const CollectiveTimes> collectives,
                                                   std::span<const double> transfer,
                                                   std::span<const Interval> blocked) {
  base::expects(transfer.size() == collectives.size(), "transfer.size() == collectives.size()");
  const auto all_turns = turns(collectives);
  std::vector<CommunicationTime> times;
  times.reserve(all_turns.size());
  for (std::size_t i = 0; i < all_turns.size(); ++i) {
    const Interval turn = all_turns[i];
    // Ranks on different clocks can disagree by a little; no part may be longer than the whole.
    const double moving = std::clamp(transfer[i], 0.0, turn.length());
    const Interval waiting{turn.begin, turn.end - moving};
    times.push_back({.total = turn.length(),
                     .transfer = moving,
                     .late_peer = turn.length() - moving,
                     .exposed_transfer = inside({waiting.end, turn.end}, blocked),
                     .exposed_wait = inside(waiting, blocked)});
  }
  return times;
}

CommunicationTime sum(std::span<const CommunicationTime> times) {
  CommunicationTime total;
  for (const auto& time : times) total += time;
  return total;
}

}  // namespace paceline::measure

#include "measure/spans.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"

namespace paceline::measure {
namespace {

/// Which of its two halves a group of 2^halvings steps keeps: 0 or 1, by the finaliser of MurmurHash3.
std::uint64_t kept_half(std::uint64_t group, int halvings) {
  std::uint64_t bits = group * 64 + static_cast<std::uint64_t>(halvings);
  bits = (bits ^ (bits >> 33)) * 0xff51afd7ed558ccdu;
  bits = (bits ^ (bits >> 33)) * 0xc4ceb9fe1a85ec53u;
  return bits >> 63;
}

/// Calls `take` with each stretch of `part` that lies inside the `blocked` intervals.
template <typename Take>
void for_each_inside(Interval part, std::span<const Interval> blocked, Take take) {
  // The first interval that ends after `part` begins; earlier ones cannot overlap it.
  auto at = std::partition_point(blocked.begin(), blocked.end(),
                                 [&](const Interval& interval) { return interval.end <= part.begin; });
  for (; at != blocked.end() && at->begin < part.end; ++at)
    take(Interval{std::max(part.begin, at->begin), std::min(part.end, at->end)});
}

double inside(Interval part, std::span<const Interval> blocked) {
  double seconds = 0;
  for_each_inside(part, blocked, [&](Interval stretch) { seconds += stretch.length(); });
  return seconds;
}

/// The turn of one collective: first waiting for a later rank, then transfer.
struct Turn {
  Interval waiting, moving;
};

Turn taken_apart(Interval turn, double transfer) {
  // Clocks of different ranks can differ slightly; no part may be longer than the whole.
  const double begin = turn.end - std::clamp(transfer, 0.0, turn.length());
  return {.waiting = {turn.begin, begin}, .moving = {begin, turn.end}};
}

}  // namespace

bool is_timed(std::int64_t step, int halvings) {
  auto group = static_cast<std::uint64_t>(step);
  for (int i = 1; i <= halvings; ++i) {
    const std::uint64_t half = group % 2;
    group /= 2;
    if (half != kept_half(group, i)) return false;
  }
  return true;
}

void halve(std::vector<double>& times, int halvings) {
  std::vector<double> kept;
  kept.reserve((times.size() + 1) / 2);
  for (std::size_t group = 0; 2 * group < times.size(); ++group) {
    const std::size_t at = 2 * group + kept_half(group, halvings + 1);
    if (at < times.size()) kept.push_back(times[at]);  // else the group's step is still to come
  }
  kept.shrink_to_fit();
  times = std::move(kept);
}

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

std::vector<CommunicationTime> communication_times(std::span<const CollectiveTimes> collectives,
                                                   std::span<const double> transfer,
                                                   std::span<const Interval> blocked) {
  base::expects(transfer.size() == collectives.size(), "transfer.size() == collectives.size()");
  const auto all_turns = turns(collectives);
  std::vector<CommunicationTime> times;
  times.reserve(all_turns.size());
  for (std::size_t i = 0; i < all_turns.size(); ++i) {
    const auto [waiting, moving] = taken_apart(all_turns[i], transfer[i]);
    times.push_back({.total = all_turns[i].length(),
                     .transfer = moving.length(),
                     .late_peer = waiting.length(),
                     .exposed_transfer = inside(moving, blocked),
                     .exposed_wait = inside(waiting, blocked)});
  }
  return times;
}

std::vector<Interval> exposed_waits(std::span<const CollectiveTimes> collectives,
                                    std::span<const double> transfer, std::span<const Interval> blocked) {
  base::expects(transfer.size() == collectives.size(), "transfer.size() == collectives.size()");
  const auto all_turns = turns(collectives);
  std::vector<Interval> waits;
  for (std::size_t i = 0; i < all_turns.size(); ++i)
    for_each_inside(taken_apart(all_turns[i], transfer[i]).waiting, blocked, [&](Interval stretch) {
      if (stretch.length() > 0) waits.push_back(stretch);
    });
  return waits;
}

CommunicationTime sum(std::span<const CommunicationTime> times) {
  CommunicationTime total;
  for (const auto& time : times) {
    total.total += time.total;
    total.transfer += time.transfer;
    total.late_peer += time.late_peer;
    total.exposed_transfer += time.exposed_transfer;
    total.exposed_wait += time.exposed_wait;
  }
  return total;
}

}  // namespace paceline::measure

#include "measure/last_steps.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace paceline::measure {
namespace {

constexpr double kMicrosecond = 1e-6;

/// Rounded to a tenth of a microsecond: more digits than the clock's precision would only make the file
/// longer.
double microseconds(double seconds) { return std::round(seconds / kMicrosecond * 10) / 10; }

/// Begin and end of the shown steps on one rank.
Interval shown(const RankSteps& rank, std::size_t steps) {
  return {rank.steps_s[rank.steps_s.size() - 1 - steps], rank.steps_s.back()};
}

/// Whether a span belongs to the interval: a collective belongs to the step in which it was posted, however
/// short it was.
bool lies_in(const TimelineSpan& span, Interval shown) {
  if (span.lane == TimelineSpan::Lane::collective)
    return span.begin_s >= shown.begin && span.begin_s < shown.end;
  return microseconds(std::min(span.end_s, shown.end) - std::max(span.begin_s, shown.begin)) > 0;
}

std::size_t spans_in(const RankSteps& rank, std::size_t steps) {
  const Interval interval = shown(rank, steps);
  return static_cast<std::size_t>(std::count_if(rank.timeline.spans.begin(), rank.timeline.spans.end(),
                                                [&](const auto& span) { return lies_in(span, interval); }));
}

double waited(const RankSteps& rank, std::size_t steps) {
  const Interval interval = shown(rank, steps);
  double seconds = 0;
  for (const auto& span : rank.timeline.spans)
    if (span.lane == TimelineSpan::Lane::phase && static_cast<Phase>(span.what) == Phase::exposed_wait &&
        lies_in(span, interval))
      seconds += span.end_s - span.begin_s;
  return seconds;
}

/// Chooses `most` ranks: those that waited least and those that waited most, in the order of ranks.
std::vector<std::size_t> chosen(std::span<const RankSteps> ranks, std::size_t steps, std::size_t most) {
  std::vector<std::size_t> order(ranks.size());
  std::iota(order.begin(), order.end(), 0);
  if (ranks.size() <= most) return order;
  std::vector<double> waits;
  for (const auto& rank : ranks) waits.push_back(waited(rank, steps));
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return waits[a] < waits[b]; });
  order.erase(order.begin() + static_cast<std::ptrdiff_t>((most + 1) / 2),
              order.end() - static_cast<std::ptrdiff_t>(most / 2));
  std::sort(order.begin(), order.end());
  return order;
}

LastStepsRecord::Rank columns_of(const RankSteps& rank, std::size_t steps, double origin, bool shares_clock) {
  const Interval interval = shown(rank, steps);
  LastStepsRecord::Rank columns;
  columns.rank = rank.timeline.rank;
  if (!shares_clock) columns.clock_error_us = microseconds(rank.timeline.clock_error_s);
  for (const auto& span : rank.timeline.spans) {
    if (!lies_in(span, interval)) continue;
    const bool is_phase = span.lane == TimelineSpan::Lane::phase;
    const double begin = std::max(span.begin_s, interval.begin), end = std::min(span.end_s, interval.end);
    (is_phase ? columns.phase : columns.bucket).push_back(span.what);
    (is_phase ? columns.begin_us : columns.posted_us).push_back(microseconds(begin - origin));
    (is_phase ? columns.length_us : columns.under_way_us).push_back(microseconds(end - begin));
  }
  return columns;
}

}  // namespace

std::optional<LastStepsRecord> last_steps(std::span<const RankSteps> ranks, std::size_t most_steps,
                                          bool shares_clock) {
  std::size_t steps = most_steps, most_ranks = kMostRanksShown;
  for (const auto& rank : ranks) steps = std::min(steps, rank.steps_s.empty() ? 0 : rank.steps_s.size() - 1);
  if (ranks.empty() || steps == 0) return std::nullopt;
  std::vector<std::size_t> places;
  const auto choose = [&] {
    places = chosen(ranks, steps, most_ranks);
    std::size_t spans = 0;
    for (const std::size_t place : places) spans += spans_in(ranks[place], steps);
    return spans;
  };
  constexpr std::size_t kFewestRanks = 2;
  while (choose() > kMostSpansShown && (steps > 1 || most_ranks > kFewestRanks))
    if (steps > 1)
      --steps;
    else
      most_ranks /= 2;
  LastStepsRecord record{.steps = static_cast<std::int64_t>(steps),
                         .ranks_left_out = static_cast<int>(ranks.size() - places.size()),
                         .ranks = {}};
  const double origin = shown(ranks.front(), steps).begin;
  for (const std::size_t place : places)
    record.ranks.push_back(columns_of(ranks[place], steps, origin, shares_clock));
  return record;
}

std::vector<RankTimeline> timelines(const LastStepsRecord& record) {
  std::vector<RankTimeline> ranks;
  for (const auto& columns : record.ranks) {
    auto& rank = ranks.emplace_back();
    rank.rank = columns.rank;
    rank.clock_error_s = kMicrosecond * columns.clock_error_us.value_or(0);
    const auto add = [&](TimelineSpan::Lane lane, int what, double begin_us, double length_us) {
      rank.spans.push_back({kMicrosecond * begin_us, kMicrosecond * (begin_us + length_us), lane, what});
    };
    for (std::size_t i = 0; i < columns.phase.size(); ++i)
      add(TimelineSpan::Lane::phase, columns.phase[i], columns.begin_us[i], columns.length_us[i]);
    for (std::size_t i = 0; i < columns.bucket.size(); ++i)
      add(TimelineSpan::Lane::collective, columns.bucket[i], columns.posted_us[i], columns.under_way_us[i]);
  }
  return ranks;
}

}  // namespace paceline::measure

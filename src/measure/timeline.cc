#include "measure/timeline.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "measure/statistics.h"

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

std::string name_of_span(const TimelineSpan& span) {
  if (span.lane == TimelineSpan::Lane::phase) return std::string(name(static_cast<Phase>(span.what)));
  return span.what == TimelineSpan::kStatistics ? "statistics" : fmt::format("bucket {}", span.what);
}

/// Times at which `rank` handed over the last bucket of each step.
std::vector<double> handed_over(const RankTimeline& rank, std::size_t buckets) {
  std::vector<double> times;
  for (const auto& span : rank.spans)
    if (span.lane == TimelineSpan::Lane::collective && span.what + 1 == static_cast<std::int32_t>(buckets))
      times.push_back(span.begin_s);
  return times;
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
                         .ranks_left_out = static_cast<int>(ranks.size() - places.size())};
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

std::vector<TimelineSpan> with_waits(std::span<const TimelineSpan> spans, std::span<const Interval> waits) {
  std::vector<TimelineSpan> cut;
  for (const auto& span : spans) {
    if (span.lane != TimelineSpan::Lane::phase ||
        span.what != static_cast<std::int32_t>(Phase::exposed_transfer)) {
      cut.push_back(span);
      continue;
    }
    double at = span.begin_s;
    const auto add = [&](double end, Phase phase) {
      if (end > at) cut.push_back({at, end, TimelineSpan::Lane::phase, static_cast<std::int32_t>(phase)});
      at = std::max(at, end);
    };
    auto wait = std::partition_point(waits.begin(), waits.end(),
                                     [&](const Interval& one) { return one.end <= span.begin_s; });
    for (; wait != waits.end() && wait->begin < span.end_s; ++wait) {
      add(wait->begin, Phase::exposed_transfer);
      add(std::min(wait->end, span.end_s), Phase::exposed_wait);
    }
    add(span.end_s, Phase::exposed_transfer);
  }
  return cut;
}

std::string chrome_trace(std::span<const RankTimeline> ranks, std::span<const std::int64_t> bucket_bytes) {
  std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  auto out = std::back_inserter(text);
  const auto label = [&](int rank, int lane, const char* what, const std::string& value) {
    fmt::format_to(out, "{{\"ph\":\"M\",\"pid\":{},\"tid\":{},\"name\":\"{}\",\"args\":{{\"name\":{}}}}},\n",
                   rank, lane, what, nlohmann::json(value).dump());
  };
  for (const auto& rank : ranks) {
    const auto place = rank.host.empty() ? "" : " on " + rank.host;
    label(rank.rank, 0, "process_name",
          fmt::format("rank {}{}{}", rank.rank, place, rank.is_cut ? " (cut: the first part only)" : ""));
    label(rank.rank, 0, "thread_name", "step");
    label(rank.rank, 1, "thread_name", "collectives");
    for (const auto& span : rank.spans) {
      const int lane = static_cast<int>(span.lane);
      // The format requires microseconds.
      fmt::format_to(out, "{{\"ph\":\"X\",\"pid\":{},\"tid\":{},\"name\":\"{}\",\"ts\":{:.3f},\"dur\":{:.3f}",
                     rank.rank, lane, name_of_span(span), 1e6 * span.begin_s,
                     1e6 * (span.end_s - span.begin_s));
      // --parallel data-parallel has collectives of no bucket.
      if (lane == 1 && span.what >= 0 && std::cmp_less(span.what, bucket_bytes.size()))
        fmt::format_to(out, ",\"args\":{{\"bytes\":{}}}", bucket_bytes[static_cast<std::size_t>(span.what)]);
      text += "},\n";
    }
  }
  nlohmann::json errors = nlohmann::json::array();
  for (const auto& rank : ranks) errors.push_back(1e6 * rank.clock_error_s);
  if (text.ends_with(",\n")) text.erase(text.size() - 2, 1);  // JSON allows no comma after the last element
  fmt::format_to(out, "],\"otherData\":{{\"clock_error_us\":{}}}}}\n", errors.dump());
  return text;
}

std::optional<Skew> skew(std::span<const RankTimeline> ranks, std::size_t buckets) {
  if (ranks.size() < 2 || buckets == 0) return std::nullopt;
  std::vector<std::vector<double>> times;
  for (const auto& rank : ranks) times.push_back(handed_over(rank, buckets));
  std::size_t steps = times.front().size();
  for (const auto& one : times) steps = std::min(steps, one.size());
  if (steps == 0) return std::nullopt;
  std::vector<double> apart;
  std::vector<std::int64_t> last(ranks.size());
  for (std::size_t step = 0; step < steps; ++step) {
    std::vector<double> column;
    for (const auto& one : times) column.push_back(one[step]);
    const auto [first, end] = std::minmax_element(column.begin(), column.end());
    apart.push_back(*end - *first);
    ++last[static_cast<std::size_t>(end - column.begin())];
  }
  const auto most = std::max_element(last.begin(), last.end());
  return Skew{.steps = static_cast<std::int64_t>(steps),
              .median_s = quantile(apart, 0.5),
              .p95_s = quantile(apart, 0.95),
              .last_rank = ranks[static_cast<std::size_t>(most - last.begin())].rank,
              .last_in = *most};
}

std::string sentence(const Skew& skew, double clock_error_s) {
  return fmt::format(
      "time between the first and the last rank to hand over a step's gradients: {:.2f} ms in the median "
      "step, {:.2f} ms at most in 95 % of the steps; rank {} was the last in {} of {} (clocks agree within "
      "{:.2f} ms)",
      1e3 * skew.median_s, 1e3 * skew.p95_s, skew.last_rank, skew.last_in, skew.steps, 1e3 * clock_error_s);
}

}  // namespace paceline::measure

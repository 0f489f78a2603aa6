#include "train/record/timeline.h"

#include <algorithm>
#include <limits>
#include <span>

namespace paceline::train {
namespace {

using measure::TimelineSpan;

double seconds_of_time(base::TimePoint time) { return base::seconds(time.time_since_epoch()); }

double now() { return seconds_of_time(base::Clock::now()); }

std::vector<double> gather(comm::Communicator& communicator, double mine) {
  std::vector<double> all(static_cast<std::size_t>(communicator.size()));
  communicator.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

/// The waits for gradients and statistics in order of time: a rank waits for one of them at a time.
std::vector<measure::Interval> waits_of(const KeptSpans& kept, double shift) {
  std::vector<measure::Interval> all;
  for (const auto* log : {&kept.gradients, &kept.statistics})
    for (const auto& wait : log->waits) all.push_back({wait.begin - shift, wait.end - shift});
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  return all;
}

}  // namespace

ClockOffset clock_offset(comm::Communicator& communicator) {
  constexpr int kRounds = 32;
  const auto me = static_cast<std::size_t>(communicator.rank());
  double most = std::numeric_limits<double>::infinity(), least = -most;
  for (int round = 0; round < kRounds; ++round) {
    communicator.barrier();  // all begin at about the same time, so the bounds are tight
    const auto begun = gather(communicator, now());
    const double ended = now();
    const double ended_at_first = gather(communicator, ended).front();
    most = std::min(most, ended - begun.front());         // rank 0 had begun before this rank ended
    least = std::max(least, begun[me] - ended_at_first);  // this rank had begun before rank 0 ended
  }
  if (communicator.rank() == 0) return {};
  return {.seconds = (most + least) / 2, .error_s = (most - least) / 2};
}

std::vector<TimelineSpan> spans_of(const KeptSpans& kept, double shift, std::size_t buckets) {
  std::vector<TimelineSpan> phases;
  for (const auto& span : kept.phases)
    phases.push_back({seconds_of_time(span.begin) - shift, seconds_of_time(span.end) - shift,
                      TimelineSpan::Lane::phase, static_cast<std::int32_t>(span.phase)});
  auto spans = measure::with_waits(phases, waits_of(kept, shift));
  const auto add = [&](const comm::Timing& timing, std::int32_t what) {
    spans.push_back({seconds_of_time(timing.posted) - shift, seconds_of_time(timing.done) - shift,
                     TimelineSpan::Lane::collective, what});
  };
  for (std::size_t i = 0; i < kept.gradients.timings.size(); ++i)
    add(kept.gradients.timings[i], static_cast<std::int32_t>(i % buckets));
  for (const auto& timing : kept.statistics.timings) add(timing, TimelineSpan::kStatistics);
  std::stable_sort(spans.begin(), spans.end(),
                   [](const TimelineSpan& a, const TimelineSpan& b) { return a.begin_s < b.begin_s; });
  return spans;
}

void Timeline::start(comm::Communicator& communicator, measure::Ledger& ledger, CollectiveLog& gradients,
                     CollectiveLog& statistics) {
  kept_ = {};
  ledger.keep_spans(&kept_.phases, kMost);
  gradients.keep_timings(&kept_.gradients, kMost);
  statistics.keep_timings(&kept_.statistics, kMost);
  offset_ = clock_offset(communicator);
  origin_s_ = comm::value_of_first(communicator, now());
}

std::vector<measure::RankTimeline> Timeline::gather(comm::Communicator& communicator, const std::string& host,
                                                    std::size_t buckets) {
  const bool is_full = kept_.phases.size() == kMost || kept_.gradients.timings.size() + buckets > kMost;
  return comm::gather_at_first<measure::RankTimeline>(
      communicator, {.rank = communicator.rank(),
                     .host = host,
                     .clock_error_s = offset_.error_s,
                     .is_cut = is_full,
                     .spans = spans_of(kept_, offset_.seconds + origin_s_, buckets)});
}

}  // namespace paceline::train

#include "measure/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "measure/statistics.h"

namespace paceline::measure {
namespace {

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
      if (lane == 1 && span.what >= 0)
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

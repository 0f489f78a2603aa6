#pragma once

/// Writes every rank's spans (stays in a phase) on one time axis in the Chrome trace format, for Perfetto and
/// chrome://tracing, and finds late ranks. Pure functions.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/archive.h"
#include "measure/ledger.h"
#include "measure/record.h"
#include "measure/spans.h"

namespace paceline::measure {

struct TimelineSpan {
  enum class Lane : std::int32_t { phase, collective };
  double begin_s = 0, end_s = 0;  ///< on rank 0's clock, from the begin of its window
  Lane lane = Lane::phase;
  std::int32_t what = 0;  ///< a Phase; or a bucket's index, kStatistics for a sum of batch norm statistics
  static constexpr std::int32_t kStatistics = -1;
};

struct RankTimeline {
  int rank = 0;
  std::string host;
  double clock_error_s = 0;  ///< bound of its times' error in either direction
  bool is_cut = false;       ///< some spans were not kept
  std::vector<TimelineSpan> spans;
};
template <typename A>
void fields(A& archive, base::In<A, RankTimeline>& value) {
  base::each_member(archive, value.rank, value.host, value.clock_error_s, value.is_cut, value.spans);
}

/// Changes those parts of Phase::exposed_transfer spans that lie inside `waits` into exposed_wait, as the
/// ledger does later. All other spans stay.
///
/// Shapes   spans: in the order of begin; waits: in order, not overlapping, on the same clock
[[nodiscard]] std::vector<TimelineSpan> with_waits(std::span<const TimelineSpan> spans,
                                                   std::span<const Interval> waits);

/// The whole file. A rank is a process of the trace; its lanes are threads: what the step did, and its
/// collectives from posting to completion.
[[nodiscard]] std::string chrome_trace(std::span<const RankTimeline> ranks,
                                       std::span<const std::int64_t> bucket_bytes);

/// How far apart the ranks are when they post the last bucket of a step; the first of them waits for that
/// long.
struct Skew {
  std::int64_t steps = 0;
  double median_s = 0, p95_s = 0;  ///< from the first rank to the last
  int last_rank = 0;               ///< the rank that is most often the last
  std::int64_t last_in = 0;        ///< steps in which it is the last
};
/// Nothing for one rank, or without steps. `buckets`: per step.
[[nodiscard]] std::optional<Skew> skew(std::span<const RankTimeline> ranks, std::size_t buckets);
[[nodiscard]] std::string sentence(const Skew& skew, double clock_error_s);

// Converts the last steps of a window between spans of all ranks and the columns of a record. Pure
// functions.

/// Limits of a record. Of more ranks it keeps the half that waited least (for which others wait) and the half
/// that waited most.
inline constexpr std::size_t kMostRanksShown = 16;
inline constexpr std::size_t kMostSpansShown = 2000;

/// One rank's spans over consecutive steps. `steps_s` has the begin of each step and the end of the last one.
/// All times are on one clock.
struct RankSteps {
  RankTimeline timeline;
  std::vector<double> steps_s;
};
template <typename A>
void fields(A& archive, base::In<A, RankSteps>& value) {
  base::each_member(archive, value.timeline, value.steps_s);
}

/// The last steps that all ranks have, at most `most_steps`; fewer steps, and then fewer ranks, if there are
/// more than kMostSpansShown spans. Spans are cut at the begin and the end of these steps; spans shorter than
/// a tenth of a microsecond are left out. Nothing if there is no complete step.
///
/// `shares_clock`: the ranks are of one process, so their times have no error.
[[nodiscard]] std::optional<LastStepsRecord> last_steps(std::span<const RankSteps> ranks,
                                                        std::size_t most_steps, bool shares_clock);

/// The inverse, in seconds: each rank's phases, then its collectives.
[[nodiscard]] std::vector<RankTimeline> timelines(const LastStepsRecord& record);

}  // namespace paceline::measure

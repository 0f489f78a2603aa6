#pragma once

/// The last steps of a window as a record keeps them: from spans of all ranks to columns of numbers, and
/// back. Pure functions.

#include <span>
#include <vector>

#include "measure/record.h"
#include "measure/timeline.h"

namespace paceline::measure {

/// What a record keeps at most: of more ranks the half that waited least (others wait for them) and the half
/// that waited most.
inline constexpr std::size_t kMostRanksShown = 16;
inline constexpr std::size_t kMostSpansShown = 2000;

/// One rank's spans of `steps.size() - 1` steps one after the other, and when they begin and end: the last
/// entry is the end of the last one. All on one clock.
struct RankSteps {
  RankTimeline timeline;
  std::vector<double> steps_s;
};

/// The steps that all ranks have, at most the last `most_steps`; fewer, and then fewer ranks, where they have
/// more spans than kMostSpansShown. Spans are cut at the begin and the end of these steps; what is shorter
/// than a tenth of a microsecond is left out. Nothing where there is no whole step.
///
/// `shares_clock`: ranks of one process, whose times have no error.
[[nodiscard]] std::optional<LastStepsRecord> last_steps(std::span<const RankSteps> ranks,
                                                        std::size_t most_steps, bool shares_clock);

/// The spans again, in seconds: each rank's phases, then its collectives.
[[nodiscard]] std::vector<RankTimeline> timelines(const LastStepsRecord& record);

}  // namespace paceline::measure

#pragma once

/// Converts the last steps of a window between spans of all ranks and the columns of a record. Pure
/// functions.

#include <span>
#include <vector>

#include "measure/record.h"
#include "measure/timeline.h"

namespace paceline::measure {

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

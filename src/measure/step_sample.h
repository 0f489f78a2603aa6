#pragma once

/// Which steps of a window keep times of their own in the record. A training has millions of steps; the times
/// of all of them would need memory and files that grow for as long as it runs.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace paceline::measure {

/// The most steps of a window that keep their times.
inline constexpr std::size_t kMostTimedSteps = 1 << 16;

/// True if `step` (from 0, in the window) keeps its times once they were halved `halvings` times: of each
/// group of 2^halvings consecutive steps exactly one does. Its place in the group is drawn for each group, so
/// that nothing that recurs at a fixed distance, such as the first step of an epoch, is always or never
/// taken. The same answer on every rank and in every run.
[[nodiscard]] bool is_timed(std::int64_t step, int halvings);

/// Takes `times`, those of the steps that is_timed() with `halvings`, in order from step 0, and leaves those
/// of the steps that still are with `halvings + 1`. No room for more is left in `times`.
void halve(std::vector<double>& times, int halvings);

}  // namespace paceline::measure

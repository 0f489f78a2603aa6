#pragma once

/// Splits the communication of one rank into moving bytes and waiting for a later rank, and finds how much of
/// both the step had to wait for. Pure functions of when each collective was posted and done.
///
///   posted ........ when this rank passed the bucket to the communicator
///   done .......... when the sum was available
///   turn .......... from the later of posted and the previous collective's done, until done. Collectives
///                   complete in the order posted, so turns do not overlap, and together they cover exactly
///                   the time in which any collective was in progress: a bucket that queues behind another
///                   is not counted twice.
///   transfer ...... the shortest turn of the same collective over all ranks. The rank that came last waited
///                   for nobody, so its turn is all transfer. Transfer is the last `transfer` seconds of
///                   every rank's turn.
///   late peer ..... the time before that: this rank was ready and another one was not
///   blocked ....... the step could not continue and waited for collectives
///   exposed ....... the part of a turn inside a blocked interval; overlapped = total - exposed
///
///        posted A      posted B    done A           done B
///          |              |          |                 |
///    A     [---- late ----[ transfer ]
///    B                    (queues)   [-late-[ transfer ]
///    step  backward ...........................][blocked]   exposed: the part of B under `blocked`
///
/// Times are seconds since any common origin.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace paceline::measure {

// Which steps of a window keep times of their own in the record. A training has millions of steps; the times
// of all of them would need memory and files that grow for as long as it runs.

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

struct Interval {
  double begin = 0;
  double end = 0;
  [[nodiscard]] double length() const { return end > begin ? end - begin : 0; }
};

struct CollectiveTimes {
  double posted = 0;
  double done = 0;
};

/// The turns of one rank's collectives, which are in the order posted.
[[nodiscard]] std::vector<Interval> turns(std::span<const CollectiveTimes> collectives);

/// The transfer of each collective: turn_seconds[rank][i] is rank's turn of collective i.
[[nodiscard]] std::vector<double> transfers(std::span<const std::vector<double>> turn_seconds);

/// Seconds of one collective, or sums over several. transfer + late_peer = total; exposed <= total for each.
struct CommunicationTime {
  double total = 0;
  double transfer = 0;
  double late_peer = 0;
  double exposed_transfer = 0;
  double exposed_wait = 0;  ///< for a later rank, with nothing else to do
};

/// One entry per collective; their sum is the rank's communication.
///
/// Shapes   transfer [collectives.size()]; blocked: in order, not overlapping
[[nodiscard]] std::vector<CommunicationTime> communication_times(std::span<const CollectiveTimes> collectives,
                                                                 std::span<const double> transfer,
                                                                 std::span<const Interval> blocked);

/// The intervals that exposed_wait adds up: blocked, and no byte moved. In order, not overlapping.
///
/// Shapes   as communication_times()
[[nodiscard]] std::vector<Interval> exposed_waits(std::span<const CollectiveTimes> collectives,
                                                  std::span<const double> transfer,
                                                  std::span<const Interval> blocked);

/// The sum of `times`.
[[nodiscard]] CommunicationTime sum(std::span<const CommunicationTime> times);

}  // namespace paceline::measure

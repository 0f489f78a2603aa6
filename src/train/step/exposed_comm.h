#pragma once

/// Computes how much of the communication a step had to wait for, and how much of that was waiting for a
/// later rank, from the times at which each collective was posted and done on every rank.

#include <functional>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "measure/ledger.h"
#include "measure/record.h"
#include "measure/spans.h"

namespace paceline::train {

/// Collects one rank's collectives and the intervals in which its step was blocked. Every step must have the
/// same collectives on every rank.
///
/// Threads  one
class CollectiveLog {
 public:
  /// The list to which the timings of finished collectives are appended.
  [[nodiscard]] std::vector<comm::Timing>& timings() { return timings_; }
  void begin_blocked();
  void end_blocked();
  /// Adds an interval in which the step was blocked; take_blocked_seconds() does not include it.
  void add_blocked(base::TimePoint begin, base::TimePoint end);
  /// Seconds that the step was blocked since the last call, or since clear().
  [[nodiscard]] double take_blocked_seconds() { return std::exchange(blocked_s_, 0); }
  /// Runs a collective that blocks, so that all of its time is exposed in `ledger`.
  void run_exposed(measure::Ledger& ledger, const std::function<void()>& collective);

  /// Exchanges durations with the other ranks: the shortest one of a collective is its transfer time. Adds
  /// communication, transfer and late-peer seconds to `rank`, moves waiting from exposed transfer to exposed
  /// wait in `ledger`, and clears the log. Collective: every rank calls it at the same step.
  /// Returns the times of each collective in the order posted.
  std::vector<measure::CommunicationTime> fold(comm::Communicator& communicator, measure::Ledger& ledger,
                                               measure::RankRecord& rank);
  void clear();
  /// What fold() keeps for a timeline.
  struct Kept {
    std::vector<comm::Timing> timings;
    std::vector<measure::Interval> waits;  ///< moved to exposed wait; in seconds of base::Clock
  };
  /// The next fold() replaces `kept` by what was posted since `since`.
  ///
  /// Requires  everything posted before `since` was done by then
  void keep_since(Kept* kept, base::TimePoint since);
  /// From now on fold() appends to `kept`, until that has `most` timings. `kept` must outlive this.
  void keep_timings(Kept* kept, std::size_t most);

 private:
  struct Blocked {
    base::TimePoint begin, end;
  };
  std::vector<comm::Timing> timings_;
  std::vector<Blocked> blocked_;
  double blocked_s_ = 0;
  Kept* kept_ = nullptr;
  std::size_t most_kept_ = 0;
  Kept* latest_ = nullptr;
  base::TimePoint latest_since_{};
};

}  // namespace paceline::train

#pragma once

/// Which part of the communication the step really had to wait for, and which part of that was waiting for a
/// later rank: worked out after the fact, from when each collective was posted and done on every rank.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "measure/ledger.h"
#include "measure/record.h"
#include "measure/spans.h"

namespace paceline::train {

/// Collects one rank's collectives and the intervals in which its step was blocked. Every step has the same
/// collectives on every rank.
///
/// Threads  one
class CollectiveLog {
 public:
  /// The list to which the timings of finished collectives are appended.
  [[nodiscard]] std::vector<comm::Timing>& timings() { return timings_; }
  void begin_blocked();
  void end_blocked();
  /// The step was blocked then; take_blocked_seconds() knows nothing of it.
  void add_blocked(base::TimePoint begin, base::TimePoint end);
  /// Seconds that the step was blocked since the last call, or since clear().
  [[nodiscard]] double take_blocked_seconds() { return std::exchange(blocked_s_, 0); }
  /// Adds `values` over all ranks while nothing else can be done, and notes when.
  void sum_blocked(comm::Communicator& communicator, std::span<double> values);

  /// Exchanges durations with the other ranks (transfer = the shortest of them), adds communication, transfer
  /// and late-peer seconds to `rank`, moves what was waiting from exposed transfer to exposed wait in
  /// `ledger`, and forgets the steps. Collective: every rank calls it at the same step.
  void fold(comm::Communicator& communicator, measure::Ledger& ledger, measure::RankRecord& rank);
  /// The same, and appends each step's figures to `buckets` (as many as a step has collectives).
  void fold(comm::Communicator& communicator, measure::Ledger& ledger, measure::RankRecord& rank,
            std::vector<measure::BucketRecord>& buckets);
  void clear();
  /// What fold() keeps of a timeline.
  struct Kept {
    std::vector<comm::Timing> timings;
    std::vector<measure::Interval> waits;  ///< what it moved to exposed wait; seconds of base::Clock
  };
  /// The next fold() puts into `kept` what was posted from `since` on, in place of what is there. Requires
  /// that whatever was posted before it was done then.
  void keep_since(Kept* kept, base::TimePoint since);
  /// fold() appends to `kept`, until there are `most` timings. `kept` outlives this.
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

#pragma once

/// Gathers the spans of all ranks on rank 0's clock; Timeline collects them from the beginning of a window
/// (--timeline).

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "measure/ledger.h"
#include "measure/timeline.h"
#include "train/step/exposed_comm.h"

namespace paceline::train {

// Measures the offset between this rank's clock and rank 0's; steady clocks of two hosts have different
// origins.

struct ClockOffset {
  double seconds = 0;  ///< this rank's clock minus rank 0's
  double error_s = 0;  ///< bound of the error in either direction
};

/// The current offset. No rank leaves an all-gather before all have entered it, so each round bounds the
/// offset from above and from below. The result is the middle of the tightest bounds of all rounds.
/// Collective.
///
/// Cost     32 small all-gathers. Drift (some microseconds a second between two hosts) is not corrected
/// Source   Cristian, Distributed Computing 3 (1989), with bounds instead of a symmetric delay
[[nodiscard]] ClockOffset clock_offset(comm::Communicator& communicator);

/// The spans of one rank, on its own clock.
struct KeptSpans {
  std::vector<measure::PhaseSpan> phases;
  CollectiveLog::Kept gradients;   ///< whole steps
  CollectiveLog::Kept statistics;  ///< of a synchronised batch norm
};
/// All spans ordered by begin, moved `shift` seconds earlier, with exposed transfer and waiting as in the
/// ledger. `buckets`: collectives per step.
[[nodiscard]] std::vector<measure::TimelineSpan> spans_of(const KeptSpans& kept, double shift,
                                                          std::size_t buckets);

/// Threads  one, the worker's own
class Timeline {
 public:
  /// Begins to collect from `ledger`, `gradients` and `statistics` (of a synchronised batch norm).
  /// Collective, since clocks are compared.
  void start(comm::Communicator& communicator, measure::Ledger& ledger, CollectiveLog& gradients,
             CollectiveLog& statistics);

  /// Gathers all ranks' spans at rank 0; the others get nothing. Collective.
  ///
  /// Cost     24 bytes a span on every rank, for the spans of all ranks
  [[nodiscard]] std::vector<measure::RankTimeline> gather(comm::Communicator& communicator,
                                                          const std::string& host, std::size_t buckets);

  /// Largest number of phases, and of collectives, per rank: about the first 20,000 steps.
  static constexpr std::size_t kMost = 100'000;

 private:
  ClockOffset offset_;
  double origin_s_ = 0;  ///< when rank 0's window begins, on its clock
  KeptSpans kept_;
};

}  // namespace paceline::train

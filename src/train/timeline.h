#pragma once

/// --timeline: this rank's spans are collected while it works, brought to rank 0's clock, and written there.

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "measure/ledger.h"
#include "measure/timeline.h"
#include "train/clock_offset.h"
#include "train/exposed_comm.h"

namespace paceline::train {

/// Threads  one, the worker's own
class Timeline {
 public:
  /// Begins to collect from `ledger` and `gradients` (and `statistics`, of a synchronised batch norm), from
  /// nothing. Collective: clocks are compared.
  void start(comm::Communicator& communicator, measure::Ledger& ledger, CollectiveLog& gradients,
             CollectiveLog& statistics);

  /// Brings all ranks' spans together; complete at rank 0, the others get nothing. Collective.
  ///
  /// Cost     24 bytes a span on every rank, for the spans of all ranks
  [[nodiscard]] std::vector<measure::RankTimeline> gather(comm::Communicator& communicator,
                                                          const std::string& host, std::size_t buckets);

  /// Phases, and collectives, of a rank that are kept: the first 20,000 steps, or thereabouts.
  static constexpr std::size_t kMost = 100'000;

 private:
  [[nodiscard]] std::vector<measure::Interval> waits(double shift) const;

  ClockOffset offset_;
  double origin_s_ = 0;  ///< rank 0's window begins then, on its clock
  std::vector<measure::PhaseSpan> phases_;
  CollectiveLog::Kept gradients_, statistics_;
};

}  // namespace paceline::train

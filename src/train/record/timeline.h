#pragma once

/// Gathers the spans of all ranks on rank 0's clock; Timeline collects them from the beginning of a window
/// (--timeline).

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "measure/ledger.h"
#include "measure/timeline.h"
#include "train/record/clock_offset.h"
#include "train/step/exposed_comm.h"

namespace paceline::train {

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

/// Gathers all ranks' spans at rank 0; the others get nothing. Collective. Of `mine` it sends host, clock
/// error, is_cut and spans.
///
/// Cost     24 bytes a span on every rank, for the spans of all ranks
[[nodiscard]] std::vector<measure::RankTimeline> gather_timelines(comm::Communicator& communicator,
                                                                  const measure::RankTimeline& mine);

/// Threads  one, the worker's own
class Timeline {
 public:
  /// Begins to collect from `ledger`, `gradients` and `statistics` (of a synchronised batch norm).
  /// Collective, since clocks are compared.
  void start(comm::Communicator& communicator, measure::Ledger& ledger, CollectiveLog& gradients,
             CollectiveLog& statistics);

  /// gather_timelines() of the collected spans.
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

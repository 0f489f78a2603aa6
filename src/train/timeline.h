#pragma once

/// Spans of all ranks on rank 0's clock; and --timeline, which collects them from the begin of a window.

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "measure/ledger.h"
#include "measure/timeline.h"
#include "train/clock_offset.h"
#include "train/exposed_comm.h"

namespace paceline::train {

/// What one rank did, on its own clock.
struct KeptSpans {
  std::vector<measure::PhaseSpan> phases;
  CollectiveLog::Kept gradients;   ///< whole steps
  CollectiveLog::Kept statistics;  ///< of a synchronised batch norm
};
/// All of it in the order of begin, `shift` seconds earlier, exposed transfer and waiting as the ledger books
/// them. `buckets`: collectives of a step.
[[nodiscard]] std::vector<measure::TimelineSpan> spans_of(const KeptSpans& kept, double shift,
                                                          std::size_t buckets);

/// Brings all ranks' spans together, each with its rank; complete at rank 0, the others get nothing.
/// Collective. Of `mine` host, clock error, is_cut and spans are sent.
///
/// Cost     24 bytes a span on every rank, for the spans of all ranks
[[nodiscard]] std::vector<measure::RankTimeline> gather_timelines(comm::Communicator& communicator,
                                                                  const measure::RankTimeline& mine);

/// Threads  one, the worker's own
class Timeline {
 public:
  /// Begins to collect from `ledger` and `gradients` (and `statistics`, of a synchronised batch norm), from
  /// nothing. Collective: clocks are compared.
  void start(comm::Communicator& communicator, measure::Ledger& ledger, CollectiveLog& gradients,
             CollectiveLog& statistics);

  /// gather_timelines() of what was collected.
  [[nodiscard]] std::vector<measure::RankTimeline> gather(comm::Communicator& communicator,
                                                          const std::string& host, std::size_t buckets);

  /// Phases, and collectives, of a rank that are kept: the first 20,000 steps, or thereabouts.
  static constexpr std::size_t kMost = 100'000;

 private:
  ClockOffset offset_;
  double origin_s_ = 0;  ///< rank 0's window begins then, on its clock
  KeptSpans kept_;
};

}  // namespace paceline::train

#pragma once

/// What this rank did in the last steps of its window: kept by every run, for the timeline of its report.

#include <array>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "comm/communicator.h"
#include "measure/last_steps.h"
#include "measure/ledger.h"
#include "train/exposed_comm.h"
#include "train/timeline.h"

namespace paceline::train {

/// All memory is taken before the window begins; a step costs a copy of each of its spans.
///
/// Threads  one, the worker's own
class RecentSteps {
 public:
  /// The window begins: nothing is kept so far. `ledger` is listened to from now on, and outlives this.
  void start(measure::Ledger& ledger);
  /// A step is over.
  void add(base::TimePoint begin, base::TimePoint end);
  /// Behind the last step of an epoch or of the window, before the logs fold: they will keep these steps too.
  void before_fold(CollectiveLog& gradients, CollectiveLog& statistics);
  /// Behind that: what an earlier epoch left is replaced. Nothing where no step was added.
  void after_fold();
  /// All ranks' last steps; at rank 0, the others get nothing. Collective.
  ///
  /// `shares_clock`: all ranks are of one process. `collectives`: buckets of a step
  [[nodiscard]] std::optional<measure::LastStepsRecord> gather(comm::Communicator& communicator,
                                                               bool shares_clock, std::size_t collectives);

 private:
  static constexpr std::size_t kSteps = 3;
  static constexpr std::size_t kSpans = 1024;  ///< 24 kB; a step of a plain network has about ten
  struct Step {
    base::TimePoint begin{}, end{};
  };

  measure::Ledger* ledger_ = nullptr;
  measure::LatestSpans spans_{kSpans};
  std::array<Step, kSteps> latest_{};  ///< a ring
  std::size_t added_ = 0;              ///< since the last fold
  std::vector<Step> steps_;            ///< of kept_, in order
  KeptSpans kept_;
};

}  // namespace paceline::train

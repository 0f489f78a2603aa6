#pragma once

/// Keeps the spans of the last steps of a rank's window; every run does, for the timeline of its report.

#include <array>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "comm/communicator.h"
#include "measure/last_steps.h"
#include "measure/ledger.h"
#include "train/record/timeline.h"
#include "train/step/exposed_comm.h"

namespace paceline::train {

/// All memory is allocated before the window begins; a step costs a copy of each of its spans.
///
/// Threads  one, the worker's own
class RecentSteps {
 public:
  /// The window begins, with nothing kept. Listens to `ledger`, which must outlive this.
  void start(measure::Ledger& ledger);
  /// Adds a step.
  void add(base::TimePoint begin, base::TimePoint end);
  /// Call after the last step of an epoch or of the window, before the logs are folded, so that they keep
  /// these steps too.
  void before_fold(CollectiveLog& gradients, CollectiveLog& statistics);
  /// Call after that: replaces what an earlier epoch left, unless no step was added.
  void after_fold();
  /// Gathers all ranks' last steps at rank 0; the others get nothing. Collective.
  ///
  /// `shares_clock`: all ranks are of one process. `collectives`: buckets per step.
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

#pragma once

/// Fills the record's lists of figures of single steps: of a rank, and of each bucket.

#include <cstdint>
#include <span>
#include <vector>

#include "measure/record.h"
#include "measure/spans.h"
#include "train/record/worker_result.h"

namespace paceline::train {

/// Counts the steps of a window and keeps the times of at most measure::kMostTimedSteps of them: when the
/// lists are full, one of each two neighbours in them gives its place up (step_sample.h). A step's figures
/// have the same index in all lists, of every rank.
///
/// Threads  one, the worker's own
/// Memory   16 bytes a kept step, and as much for each bucket
class StepTimes {
 public:
  /// A window begins: clears the lists of `rank` and reserves memory for `steps`; not to be called in a step.
  void begin(std::int64_t steps, measure::RankRecord& rank);
  /// Adds a step of `seconds`, of which the rank itself worked `own` seconds.
  void add(measure::RankRecord& rank, double seconds, double own);
  /// Adds the collectives of the steps added since the last call, one for each bucket of a step; none from a
  /// single worker.
  void add(std::vector<measure::BucketRecord>& buckets, std::span<const measure::CommunicationTime> times);
  /// The window ends: adds to `result` how many steps it had, and what its lists no longer say.
  void end(WorkerResult& result) const;
  [[nodiscard]] std::int64_t steps() const { return steps_; }  ///< in the window

 private:
  std::int64_t steps_ = 0, steps_of_buckets_ = 0;
  double seconds_ = 0;  ///< of all steps
  int halvings_ = 0, halvings_of_buckets_ = 0;
};

}  // namespace paceline::train

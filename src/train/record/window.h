#pragma once

/// Measures a worker's window besides the ledger: time, traffic, the loader's work, processor time of other
/// programs, and a device's memory at the end.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "comm/communicator.h"
#include "data/loader.h"
#include "measure/disturbance.h"
#include "measure/pauses.h"
#include "measure/record.h"
#include "measure/spans.h"
#include "train/given/job.h"
#include "train/record/gather.h"

namespace paceline::train {

// Fills the record's lists of figures of single steps: of a rank, and of each bucket.

/// Counts the steps of a window and keeps the times of at most measure::kMostTimedSteps of them: when the
/// lists are full, one of each two neighbours in them gives its place up (is_timed). A step's figures
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

class Window {
 public:
  Window(const Job& job, comm::Communicator& communicator) : job_(job), communicator_(communicator) {}

  /// Begins the window; call it directly before the ledger starts. A later call begins again. `loader`:
  /// nullptr for a worker without one.
  void begin(const data::Loader* loader);
  /// `loader` ends inside the window and another replaces it: adds its work.
  void loader_ends(const data::Loader& loader);
  [[nodiscard]] double seconds() const { return base::seconds_since(begin_); }
  /// Whether the window is open (after the warm-up), has enough steps for a median, and --window-seconds have
  /// passed.
  [[nodiscard]] bool is_long_enough(std::int64_t update, std::int64_t steps) const;
  /// Ends the measurement of traffic; what follows is bookkeeping.
  void end_traffic() { traffic_ = communicator_.traffic(); }
  /// Ends the window, after end_traffic(). All ranks call it: two reductions if there are several processes.
  void end(const data::Loader* loader, const engine::Engine& engine, WorkerResult& result);

 private:
  [[nodiscard]] bool is_first_of_process() const;
  void find_others(WorkerResult& result);
  void find_pauses(WorkerResult& result);
  void find_gpus(WorkerResult& result);
  [[nodiscard]] std::string left_out() const;
  void describe_loader(const data::Loader* loader, measure::RankRecord& rank) const;

  const Job& job_;
  comm::Communicator& communicator_;
  std::optional<measure::ProcessorTimes> times_before_;
  measure::ProgramTimes programs_before_;
  std::optional<measure::PauseWatch> pauses_;  ///< of the first rank of a process
  comm::Traffic traffic_before_, traffic_;
  data::LoaderStatistics loader_before_;
  base::TimePoint begin_{};
};

}  // namespace paceline::train

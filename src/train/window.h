#pragma once

/// What is measured from the begin of a worker's window to its end, beside the ledger: time, traffic, the
/// loader's work, and what other programs took of the processors.

#include <optional>
#include <string>

#include "base/clock.h"
#include "comm/communicator.h"
#include "data/loader.h"
#include "measure/other_programs.h"
#include "measure/processor_time.h"
#include "train/job.h"
#include "train/worker_result.h"

namespace paceline::train {

class Window {
 public:
  Window(const Job& job, comm::Communicator& communicator) : job_(job), communicator_(communicator) {}

  /// The last thing before the ledger starts. A later one begins anew.
  /// `loader`: nullptr for a worker that is handed its batches.
  void begin(const data::Loader* loader);
  /// Empties the lists of steps of `rank`, and takes the memory for so many of them: not in a step.
  static void reserve(std::int64_t steps, measure::RankRecord& rank);
  /// `loader` ends inside the window and another takes its place: what it did counts.
  void loader_ends(const data::Loader& loader);
  [[nodiscard]] double seconds() const { return base::seconds_since(begin_); }
  /// Whether the window is open (after the warm-up), has the fewest steps of which a median means something,
  /// and its --window-seconds are over.
  [[nodiscard]] bool is_long_enough(std::int64_t update, std::size_t steps) const;
  /// The traffic of the window ends here; what follows is its bookkeeping.
  void end_traffic() { traffic_ = communicator_.traffic(); }
  /// Behind end_traffic(). All ranks together: one reduction where there are several processes.
  void end(const data::Loader* loader, WorkerResult& result);

 private:
  [[nodiscard]] bool is_first_of_process() const;
  void find_others(WorkerResult& result);
  void find_gpus(WorkerResult& result);
  [[nodiscard]] std::string left_out() const;
  void describe_loader(const data::Loader* loader, measure::RankRecord& rank) const;

  const Job& job_;
  comm::Communicator& communicator_;
  std::optional<measure::ProcessorTimes> times_before_;
  measure::ProgramTimes programs_before_;
  comm::Traffic traffic_before_, traffic_;
  data::LoaderStatistics loader_before_;
  base::TimePoint begin_{};
};

}  // namespace paceline::train

#pragma once

/// Measures a worker's window besides the ledger: time, traffic, the loader's work, processor time of other
/// programs, and a device's memory at the end.

#include <optional>
#include <string>

#include "base/clock.h"
#include "comm/communicator.h"
#include "data/loader.h"
#include "measure/other_programs.h"
#include "measure/processor_time.h"
#include "train/given/job.h"
#include "train/record/worker_result.h"

namespace paceline::train {

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
  /// Ends the window, after end_traffic(). All ranks call it: one reduction if there are several processes.
  void end(const data::Loader* loader, const engine::Engine& engine, WorkerResult& result);

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

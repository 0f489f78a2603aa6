#pragma once

/// One training, from options to record: where data, engine, communicator and measuring meet.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "engine/engine.h"
#include "measure/record.h"
#include "train/options.h"

namespace paceline::train {

/// Where this process stands among those that a launcher started. Every process has as many workers, in the
/// order of processes: process p's are ranks p L to (p+1) L - 1.
struct ProcessPlacement {
  int process = 0;
  int processes = 1;
  int neighbours = 1;            ///< processes on this host, this one included: they share its memory
  int core_sharers = 1;          ///< of them, those that may run on the very same cores as this one
  int core_share_index = 0;      ///< this one's place among these
  int hosts = 1;                 ///< of all processes
  bool is_beside_first = true;   ///< on the host of process 0
  bool is_first_of_host = true;  ///< no process before it is on its host
  std::string host;
  std::string launcher;  ///< "mpirun (OMPI_COMM_WORLD_SIZE)"; empty: started alone
  std::string library;   ///< "Open MPI v4.1.4"
  [[nodiscard]] bool is_first() const { return process == 0; }
};

/// That a rank of another process was lost.
struct Loss {
  measure::LossRecord record;
  bool of_first = false;  ///< process 0, which else writes for all, is the lost one
};

/// The concrete backends, handed in by cli: train itself names none.
struct Backend {
  std::function<std::unique_ptr<engine::Engine>(const graph::Graph&, const engine::CompileOptions&)> compile;
  std::function<std::string(const graph::Graph&, const engine::CompileOptions&)> prepare;
  /// Tells the other processes what this one does before and after its steps; may be empty.
  std::function<void(const char* phase)> at = {};
  std::function<graph::MemoryPlan(const graph::Graph&, const engine::CompileOptions&)> plan;
  /// The communicators of this process's `ranks` workers.
  std::function<std::vector<std::unique_ptr<comm::Communicator>>(int ranks, std::chrono::seconds deadline)>
      communicators;
  std::function<std::optional<Loss>()> loss;
  ProcessPlacement place = {};
  bool has_bf16_units = false;
  std::vector<std::string> libraries;  ///< that compute, with versions: for the record
};

/// What a run tells while it goes on; called by rank 0's thread. All may be empty.
struct Progress {
  std::function<void(const std::string& line)>
      say;  ///< one line worth reading: the plan, the lr rule, a warning
  std::function<void(std::int64_t step, std::int64_t steps, double loss, double images_per_s)> step;
  std::function<void(const measure::EpochRecord&)> epoch;
};

/// What a run of these options would need and has, found without running it.
struct Setup {
  graph::MemoryPlan
      plan;  ///< of the whole run: all workers, loaders, data set, the process itself, by purpose
  std::int64_t usable_bytes = 0;
  std::int64_t updates = 0;  ///< of the whole run
  measure::Record::Model model;
  measure::Record::Data data;
};
/// Errors   Error(usage), Error(data) as run() has them; a plan that does not fit is no error here
[[nodiscard]] Setup inspect(const Options& options, const Backend& backend);

/// The largest local batch that memory and data set allow for these options; 0 when none does.
[[nodiscard]] std::int64_t largest_batch(const Options& options, const Backend& backend);

/// Trains as told. With several processes every one calls it with the same options; the first writes record
/// and checkpoints and gets the whole record, the others get what they know themselves. Stops early, with
/// status "interrupted" and everything kept, when `stop` is requested.
///
/// Errors   Error(usage) for impossible options (batch 0, a global batch that does not divide or exceeds the
///          data set); Error(device) when the plan exceeds the memory there is, with both numbers and the
///          largest batch that fits; Error(data); Error(comm). A loss that is no longer finite is Error(data)
///          naming step, learning rate and the last good checkpoint.
/// Threads  starts a thread for each of this process's workers and joins them
[[nodiscard]] measure::Record run(const Options& options, const Backend& backend, std::stop_token stop,
                                  const Progress& progress);

}  // namespace paceline::train

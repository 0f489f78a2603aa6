#pragma once

/// WorkerResult is what a worker measured; checks that ranks agree, and sums counts.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "engine/engine.h"
#include "measure/gpu_watch.h"
#include "measure/record.h"
#include "measure/timeline.h"
#include "train/step/loss_guard.h"

namespace paceline::train {

// The result of a worker thread, which run() joins with those of all workers into the record.

/// Figures are of the measured window only, except epochs, steps and `first_step_s`.
struct WorkerResult {
  measure::RankRecord rank;
  std::vector<measure::RankRecord> all_ranks;  ///< rank 0, if there are several processes: of all of them
  std::vector<measure::BucketRecord> buckets;
  std::vector<measure::EpochRecord> epochs;
  std::vector<measure::StepRecord> steps;
  std::int64_t window_steps = 0;
  std::int64_t timed_of = 1;  ///< measure::Record::MeasuredWindow::timed_of; 1: each step
  comm::Traffic traffic;      ///< of the window
  std::int64_t gradient_bytes = 0;
  std::int64_t vote_bytes = 0;                         ///< in `buckets`, behind the gradients
  std::vector<measure::RankTimeline> timelines;        ///< --timeline: of all ranks; rank 0
  std::optional<measure::LastStepsRecord> last_steps;  ///< of all ranks; rank 0
  std::optional<double> allreduce_peak_gb_per_s;       ///< step_runner.h
  std::optional<double> others_cores;  ///< cores kept busy by other programs during the window; rank 0
  std::vector<measure::OtherProgramRecord> others;       ///< the busiest of these programs; rank 0
  std::optional<double> paused_s;                        ///< of the process that stood still longest; rank 0
  std::vector<measure::GpuReport> gpus;                  ///< one report for each process with GPUs; rank 0
  std::int64_t norm_bytes = 0, norm_collectives = 0;     ///< of synchronised batch norm, in the window
  std::optional<engine::DeviceMemoryUse> device_memory;  ///< at the end
  bool interrupted = false;
  ValidationState validation;  ///< at the end
  bool stopped_early = false;
  std::vector<measure::RollbackRecord> rollbacks;       ///< of this run
  std::int64_t all_rollbacks = 0, skipped_updates = 0;  ///< of the training, including earlier runs
  std::optional<engine::LossScale> loss_scale = {};     ///< of fp16
  /// --test-set last: the chosen epoch and its weights' figures; none if the run did not get there.
  std::optional<measure::TestSetRecord> tested;
  std::int64_t test_reads_elsewhere = 0;  ///< images of the test set that other processes read
  std::vector<std::string> notes;
};

/// A sentence for the record on whether the weights of all ranks are equal in every bit. Collective. For
/// processes, which may run on different kinds of processors.
///
/// Cost     one pass over the weights, 8 bytes per rank
[[nodiscard]] std::string compare_weights(comm::Communicator& communicator, engine::Engine& engine);

/// Whether every rank has this text. Collective; the same answer on every rank.
[[nodiscard]] bool is_same_everywhere(comm::Communicator& communicator, std::string_view text);

/// The sum of `count` over all ranks. Collective.
///
/// Requires  the sum is below 2^53
[[nodiscard]] std::int64_t sum_of(comm::Communicator& communicator, std::int64_t count);

}  // namespace paceline::train

#pragma once

/// What a run's record says: all that is known before the first step, then what the workers bring home.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "data/dataset.h"
#include "graph/graph.h"
#include "graph/plan.h"
#include "measure/gpu_watch.h"
#include "measure/record.h"
#include "train/backend.h"
#include "train/memory.h"
#include "train/options.h"
#include "train/resolve.h"
#include "train/worker_result.h"

namespace paceline::train {

[[nodiscard]] measure::Record::Model describe(const Options& options, const graph::Graph& graph,
                                              engine::Precision precision);
[[nodiscard]] measure::Record::Data describe(const data::Source& source);
[[nodiscard]] measure::Record::Memory describe(const graph::MemoryPlan& plan, const MemoryLimits& limits);

/// "4 workers x 1 thread on 2 cores", with the processes where there are several.
[[nodiscard]] std::string describe_workers(const Resolved& resolved, const ProcessPlacement& place);
[[nodiscard]] std::string describe_memory(const measure::Record& record);  ///< planned, of what there is

/// Everything that is known before the first step.
[[nodiscard]] measure::Record begin_record(const Options& options, const Resolved& resolved,
                                           const graph::Graph& graph, const data::Source& source,
                                           const graph::MemoryPlan& plan, const MemoryLimits& limits,
                                           const Backend& backend);

/// What the note begins with on a training that --early-stopping ended.
inline constexpr const char* kStoppedEarly = "stopped early";

/// Joins what this process's workers brought home into the record; `results` are used up.
void complete_record(measure::Record& record, std::vector<WorkerResult>& results,
                     const comm::Communicator& communicator);

/// Begins to read the GPUs of this process; nullptr where it uses none.
[[nodiscard]] std::unique_ptr<measure::GpuWatch> watch_gpus(const Backend& backend, int local_workers);

/// What the processes read of their GPUs, and a note of what they were not told.
void add_gpus(measure::Record& record, std::span<const measure::GpuReport> reports);

/// The epoch whose weights were tested at the end gets these figures too. Needs the epochs of all runs of the
/// training.
void fill_in_tested(measure::Record& record);

/// With a validation set the epoch is chosen there, and the test set only says what that choice is worth: the
/// sentence, or "" without one.
[[nodiscard]] std::string best_epoch(const measure::Record& record);

}  // namespace paceline::train

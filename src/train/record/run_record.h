#pragma once

/// Fills a run's record: what is known before the first step, then the workers' results.

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
#include "train/given/backend.h"
#include "train/given/options.h"
#include "train/given/resolve.h"
#include "train/prepare/memory.h"
#include "train/record/gather.h"

namespace paceline::train {

/// As measure::environment(), with the cores that all processes of this host may use together. So all cells
/// of a session name the same machine, however many of its processes each uses.
[[nodiscard]] measure::Environment machine_of(const ProcessPlacement& place,
                                              std::vector<std::string> libraries = {});

[[nodiscard]] measure::Record::Model describe(const Options& options, const graph::Graph& graph,
                                              engine::Precision precision);
[[nodiscard]] measure::Record::Data describe(const data::Source& source);
[[nodiscard]] measure::Record::Memory describe(const graph::MemoryPlan& plan, const MemoryLimits& limits);

/// "4 workers x 1 thread on 2 cores", with the processes if there are several.
[[nodiscard]] std::string describe_workers(const Resolved& resolved, const ProcessPlacement& place);
[[nodiscard]] std::string describe_memory(const measure::Record& record);  ///< planned and available

/// Everything that is known before the first step.
[[nodiscard]] measure::Record begin_record(const Options& options, const Resolved& resolved,
                                           const RunParts& parts, const graph::MemoryPlan& plan);

/// The beginning of the note on a training that --early-stopping ended.
inline constexpr const char* kStoppedEarly = "stopped early";

/// Joins the results of this process's workers into the record; moves from `results`.
void complete_record(measure::Record& record, std::vector<WorkerResult>& results,
                     const comm::Communicator& communicator);

/// Starts reading the GPUs of this process; null if it uses none.
[[nodiscard]] std::unique_ptr<measure::GpuWatch> watch_gpus(const Backend& backend, int local_workers);

/// Adds the GPU reports of all processes to the record, and a note about values that the driver did not give.
void add_gpus(measure::Record& record, std::span<const measure::GpuReport> reports);

/// Adds the final test figures to the epoch whose weights were tested. The record must have the epochs of all
/// runs of the training.
void fill_in_tested(measure::Record& record);

/// A sentence about the epoch that the validation set chose and its test accuracy; "" without a validation
/// set.
[[nodiscard]] std::string best_epoch(const measure::Record& record);

}  // namespace paceline::train

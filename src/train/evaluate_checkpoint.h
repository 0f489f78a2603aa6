#pragma once

/// Evaluates a checkpoint in detail: accuracy by class, confusions, and the worst mistakes.

#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "measure/record.h"
#include "train/given/backend.h"
#include "train/given/job.h"
#include "train/given/options.h"
#include "train/prepare/memory.h"

namespace paceline::train {

/// `asked`, for an evaluation alone: no training and no optimizer state.
[[nodiscard]] Options as_evaluated(Options asked);

/// Requires memory for an evaluation of `checkpoint`, and chooses its kernels, in `resolved`, with what is to
/// be said of them in `notes`. Returns the memory plan.
///
/// Errors   Error(device): the plan exceeds the memory
graph::MemoryPlan prepare_evaluation(const CheckpointInfo& checkpoint, const Options& options,
                                     Resolved& resolved, const RunParts& parts,
                                     std::vector<std::string>& notes);

/// The engine of worker `rank`, compiled as in a training, with the weights of `checkpoint`.
[[nodiscard]] std::unique_ptr<engine::Engine> engine_with_weights(const std::filesystem::path& checkpoint,
                                                                  const Options& options,
                                                                  const Resolved& resolved,
                                                                  const graph::Graph& graph,
                                                                  const Backend& backend, int rank);

struct EvaluationRequest {
  std::filesystem::path checkpoint;  ///< a file, or a training's directory
  std::string part = "test";         ///< or "validation"
  int mistakes = 10;                 ///< how many of the most confident mistakes to list
};

/// Evaluates as a training with `options` does (model, data, precision, device, batch, shard, bn, label
/// smoothing and views matter). Classes go by their names: a set that lacks some of those that the checkpoint
/// knows is evaluated on the others. Loss and accuracy are bit for bit those of that training's own
/// evaluation, for any number of workers. The record is of kind "evaluate".
///
/// Cost     one pass over the part; memory as for a training, whose kernels are used
/// Errors   Error(usage): no such part; Error(data): classes that the checkpoint does not know (with their
///          names), a checkpoint of another model (with the tensor), images
///          that cannot be read; Error(device): the plan exceeds the memory
/// Threads  starts a thread for each worker and joins them; one process
[[nodiscard]] measure::Record evaluate_checkpoint(const Options& options, const EvaluationRequest& request,
                                                  const Backend& backend, std::stop_token stop,
                                                  const Progress& progress);

}  // namespace paceline::train

#pragma once

/// Evaluates a checkpoint in detail: accuracy by class, confusions, and the worst mistakes.

#include <filesystem>
#include <stop_token>
#include <string>

#include "measure/record.h"
#include "train/given/backend.h"
#include "train/given/job.h"
#include "train/given/options.h"

namespace paceline::train {

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

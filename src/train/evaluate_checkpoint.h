#pragma once

/// A checkpoint on the test (or validation) part of a data set, looked at more closely than a training does:
/// by class, with confusions and the worst mistakes.

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>

#include "measure/record.h"
#include "train/backend.h"
#include "train/options.h"
#include "train/progress.h"

namespace paceline::train {

struct EvaluationRequest {
  std::filesystem::path checkpoint;  ///< a file, or a training's directory
  std::string part = "test";         ///< or "validation"
  int mistakes = 10;                 ///< how many of the most confident ones are listed
};

/// Evaluates as a training of `options` does (model, data, precision, device, batch, shard, bn, label
/// smoothing and views count): its loss and accuracy are those of that training's own evaluation, bit for
/// bit, for any number of workers. The record is of kind "evaluate".
///
/// Cost     one pass over the part; memory as a training's, whose kernels are used
/// Errors   Error(usage): no such part; Error(data): a checkpoint of another model (which tensor), images
/// that
///          cannot be read; Error(device): the plan exceeds the memory
/// Threads  starts a thread for each worker and joins them. One process
[[nodiscard]] measure::Record evaluate_checkpoint(const Options& options, const EvaluationRequest& request,
                                                  const Backend& backend, std::stop_token stop,
                                                  const Progress& progress);

}  // namespace paceline::train

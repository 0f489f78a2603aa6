#pragma once

/// Which samples were in a step: for those who look for a broken image or label.

#include <cstdint>
#include <string>
#include <vector>

#include "train/job.h"

namespace paceline::train {

/// The global batch of a step.
struct BatchNames {
  std::int64_t epoch = 0, step = 0;   ///< from 1
  std::vector<std::int64_t> samples;  ///< indices in the training set, in the order of the workers
};

/// That of the step after `update` updates.
/// Cost     a few hashes a sample: not for every step
[[nodiscard]] BatchNames batch_of(const Job& job, std::int64_t update);

/// "the batch of step 3 of epoch 2 (training samples 12, 7, 90, ...)": the first eight.
[[nodiscard]] std::string sentence(const BatchNames& batch);
/// "12 7 90": all of them.
[[nodiscard]] std::string list(const BatchNames& batch);

}  // namespace paceline::train

#pragma once

/// Names the samples of a step, to help find a broken image or label.

#include <cstdint>
#include <string>
#include <vector>

#include "train/given/job.h"

namespace paceline::train {

/// The global batch of a step.
struct BatchNames {
  std::int64_t epoch = 0, step = 0;   ///< from 1
  std::vector<std::int64_t> samples;  ///< indices in the training set, in the order of the workers
};

/// The global batch of the step after `update` updates.
///
/// Cost     a few hashes per sample; too much for every step
[[nodiscard]] BatchNames batch_of(const Job& job, std::int64_t update);

/// "the batch of step 3 of epoch 2 (training samples 12, 7, 90, ...)", with the first eight samples.
[[nodiscard]] std::string sentence(const BatchNames& batch);
/// "12 7 90": all of them.
[[nodiscard]] std::string list(const BatchNames& batch);

}  // namespace paceline::train

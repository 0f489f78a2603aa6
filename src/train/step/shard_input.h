#pragma once

/// Makes the engine's input for a shard (a fixed number of samples whose gradient is one term of the sum) of
/// a batch.

#include <cstdint>

#include "data/loader.h"
#include "engine/engine.h"
#include "train/given/job.h"

namespace paceline::train {

/// Shard `shard` of `batch` in step `update` (from 0).
[[nodiscard]] inline engine::StepInput shard_input(const data::Batch& batch, const Resolved& resolved,
                                                   std::int64_t shard, std::int64_t update) {
  const std::int64_t samples = resolved.engine_batch;
  const std::size_t pixels = batch.images.size() / batch.labels.size();  // 0 if the engine has the images
  const std::size_t draws = batch.draws.size() / batch.labels.size();    // then 1, else 0
  return {.images = batch.images.subspan(static_cast<std::size_t>(shard * samples) * pixels,
                                         static_cast<std::size_t>(samples) * pixels),
          .labels = batch.labels.subspan(static_cast<std::size_t>(shard * samples),
                                         static_cast<std::size_t>(samples)),
          .gradient_scale = 1.0 / static_cast<double>(resolved.global_batch),
          .step = static_cast<std::uint64_t>(update),
          .first_position = batch.first_position + shard * samples,
          .draws = batch.draws.subspan(static_cast<std::size_t>(shard * samples) * draws,
                                       static_cast<std::size_t>(samples) * draws)};
}

}  // namespace paceline::train

#pragma once

/// Kernels that clip the gradient to a norm before an update (UpdateRule::clip_norm), without the host, which
/// learns the norm from the step's report.
///
///     GradientSquares (gradient_squares.h) -> ClipFactor -> ClipGradients -> the kernels of update.h

#include <cmath>

#include "engine/cuda/kernels/gradient_squares.h"

namespace paceline::engine::cuda {

/// Computes the norm and what gradients are multiplied by. Adds the chunks' sums in a fixed order.
///
/// Cost   one thread block
struct ClipFactor {
  const double* partial;  ///< [chunk_count]
  int chunk_count;
  double clip_norm;
  const StepNumbers* numbers;
  StepReport* report;  ///< on the device: receives the norm, like that of `numbers`
  float* factor;

  [[nodiscard]] Grid grid() const { return kGridOfSum; }
  [[nodiscard]] PACELINE_HD int phases() const { return 2; }
  PACELINE_HD void run(int phase, const ThreadIndex& at, float* shared) const {
    const double sum = sum_of_partial(partial, chunk_count, phase, at, reinterpret_cast<double*>(shared));
    if (phase == 1 && at.thread == 0) {
      const double norm = std::sqrt(sum), scale = clip_norm / (norm + 1e-6);
      report->gradient_norm = norm;
      if (numbers->report != nullptr) numbers->report->gradient_norm = norm;
      *factor = scale >= 1 ? 1.0f : static_cast<float>(scale);  // NaN stays NaN
    }
  }
};

/// Multiplies the chunks of the gradient by the factor; does nothing if it is 1.
///
/// Cost   8 bytes for each element, if it does something
struct ClipGradients {
  const LarsChunk* chunks;  ///< [chunk_count]
  int chunk_count;
  const float* factor;
  float* gradients;

  [[nodiscard]] Grid grid() const {
    return {.blocks = chunk_count, .threads = kMostThreads, .shared_bytes = 0};
  }
  PACELINE_HD void run(const ThreadIndex& at) const {
    if (*factor == 1) return;
    const LarsChunk chunk = chunks[at.block];
    for (std::int32_t i = at.thread; i < chunk.count; i += at.threads) gradients[chunk.begin + i] *= *factor;
  }
};

}  // namespace paceline::engine::cuda

#pragma once

/// Kernels of the dynamic loss scale of fp16, without the host. The smallest fp16 numbers are 6e-8, and
/// gradients of activations are often smaller: the loss's gradient is multiplied by a scale, and the
/// gradients of weights, which are fp32, by its reciprocal.
///
///     SoftmaxBackward (times scale) ... UnscaleGradients ... (sum over ranks)
///         -> GradientSquares (gradient_squares.h) -> JudgeLossScale -> the kernels of update.h
///
/// A number that does not fit into fp16 becomes infinite, and so does the sum over ranks: each rank finds it
/// there and leaves out the same update.

#include "engine/cuda/kernels/gradient_squares.h"
#include "engine/loss_scale.h"

namespace paceline::engine::cuda {

/// The scale on the device.
struct DeviceLossScale {
  LossScale state;
  std::int32_t skips;  ///< not 0: the update that comes next is left out
};

/// Multiplies the chunks of the gradient by 1 / scale. The scale is a power of two, so nothing is rounded,
/// except sums below fp32's normal numbers.
///
/// Cost   8 bytes for each element
struct UnscaleGradients {
  const LarsChunk* chunks;  ///< [chunk_count]
  int chunk_count;
  const DeviceLossScale* scale;
  float* gradients;

  [[nodiscard]] Grid grid() const {
    return {.blocks = chunk_count, .threads = kMostThreads, .shared_bytes = 0};
  }
  PACELINE_HD void run(const ThreadIndex& at) const {
    const LarsChunk chunk = chunks[at.block];
    const float factor = 1 / scale->state.scale;
    for (std::int32_t i = at.thread; i < chunk.count; i += at.threads) gradients[chunk.begin + i] *= factor;
  }
};

/// Decides about the update by the sum of squares of all gradients, and changes the scale.
///
/// Cost   one thread block
struct JudgeLossScale {
  const double* partial;  ///< [chunk_count]
  int chunk_count;
  const std::int32_t* is_halted;  ///< of JudgeVotes: such a step counts for nothing
  DeviceLossScale* scale;

  [[nodiscard]] Grid grid() const { return kGridOfSum; }
  [[nodiscard]] PACELINE_HD int phases() const { return 2; }
  PACELINE_HD void run(int phase, const ThreadIndex& at, float* shared) const {
    const double sum = sum_of_partial(partial, chunk_count, phase, at, reinterpret_cast<double*>(shared));
    if (phase != 1 || at.thread != 0) return;
    const bool is_finite = sum - sum == 0;
    scale->skips = *is_halted != 0 || !is_finite ? 1 : 0;
    if (*is_halted == 0) change(scale->state, is_finite);
  }

 private:
  PACELINE_HD static void change(LossScale& state, bool is_finite) {
    ++state.clean;
    if (!is_finite) {
      state.clean = 0;
      ++state.left_out;
      if (state.scale > kLeastLossScale) state.scale /= 2;
    } else if (state.clean == kCleanUpdates) {
      state.clean = 0;
      if (state.scale < kMostLossScale) state.scale *= 2;
    }
  }
};

}  // namespace paceline::engine::cuda

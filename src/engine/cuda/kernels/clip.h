#pragma once

/// Kernels that clip the gradient to a norm before an update (UpdateRule::clip_norm), without the host, which
/// learns the norm from the step's report.
///
///     GradientSquares -> ClipFactor -> ClipGradients -> the kernels of update.h

#include <cmath>

#include "engine/cuda/kernels/step_report.h"
#include "engine/cuda/kernels/update.h"

namespace paceline::engine::cuda {

/// Computes the sum of squares of each chunk of the gradient.
///
/// Cost   reads the chunks once
struct GradientSquares {
  const LarsChunk* chunks;  ///< [chunk_count]
  int chunk_count;
  const float* gradients;
  double* partial;  ///< [chunk_count]

  static constexpr int kSecond = 16;  ///< threads in phase 1
  [[nodiscard]] Grid grid() const {
    return {.blocks = chunk_count,
            .threads = kMostThreads,
            .shared_bytes =
                kMostThreads * static_cast<int>(sizeof(float)) + kSecond * static_cast<int>(sizeof(double))};
  }
  [[nodiscard]] PACELINE_HD int phases() const { return 3; }
  PACELINE_HD void run(int phase, const ThreadIndex& at, float* shared) const {
    auto* second = reinterpret_cast<double*>(shared);
    float* first = shared + 2 * kSecond;  // behind the doubles
    if (phase == 0) {
      const LarsChunk chunk = chunks[at.block];
      first[at.thread] = sum_of_squares(gradients + chunk.begin, chunk.count, at);
    } else if (phase == 1 && at.thread < kSecond) {
      double sum = 0;
      for (int i = at.thread; i < at.threads; i += kSecond) sum += static_cast<double>(first[i]);
      second[at.thread] = sum;
    } else if (phase == 2 && at.thread == 0) {
      double sum = 0;
      for (int i = 0; i < kSecond; ++i) sum += second[i];
      partial[at.block] = sum;
    }
  }
};

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

  static constexpr int kThreads = 256;
  [[nodiscard]] Grid grid() const {
    return {.blocks = 1, .threads = kThreads, .shared_bytes = kThreads * static_cast<int>(sizeof(double))};
  }
  [[nodiscard]] PACELINE_HD int phases() const { return 2; }
  PACELINE_HD void run(int phase, const ThreadIndex& at, float* shared) const {
    auto* sums = reinterpret_cast<double*>(shared);
    if (phase == 0) {
      double sum = 0;
      for (int c = at.thread; c < chunk_count; c += kThreads) sum += partial[c];
      sums[at.thread] = sum;
    } else if (at.thread == 0) {
      double sum = 0;
      for (int i = 0; i < kThreads; ++i) sum += sums[i];
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
  [[nodiscard]] PACELINE_HD int phases() const { return 1; }
  PACELINE_HD void run(int, const ThreadIndex& at, float*) const {
    if (*factor == 1) return;
    const LarsChunk chunk = chunks[at.block];
    for (std::int32_t i = at.thread; i < chunk.count; i += at.threads) gradients[chunk.begin + i] *= *factor;
  }
};

}  // namespace paceline::engine::cuda

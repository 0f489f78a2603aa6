#pragma once

/// Kernels that add the squares of gradients without the host: for clipping (clip.h) and for the gradient's
/// noise scale (engine.h, StepQueue::add_squares()).
///
///     GradientSquares -> ClipFactor, or AddSquares

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

  [[nodiscard]] Grid grid() const { return ChunkSums<1>::grid(chunk_count); }
  [[nodiscard]] PACELINE_HD int phases() const { return 3; }
  PACELINE_HD void run(int phase, const ThreadIndex& at, float* shared) const {
    if (phase > 0) return ChunkSums<1>::add(phase, at, shared, partial + at.block);
    const LarsChunk chunk = chunks[at.block];
    ChunkSums<1>::of_threads(shared)[at.thread] = sum_of_squares(gradients + chunk.begin, chunk.count, at);
  }
};

/// The sum of `count` partial sums in a fixed order, by one block of kSumThreads threads: phases 0 and 1, and
/// thread 0 has it in phase 1.
constexpr int kSumThreads = 256;
constexpr Grid kGridOfSum{
    .blocks = 1, .threads = kSumThreads, .shared_bytes = kSumThreads * static_cast<int>(sizeof(double))};
PACELINE_HD double sum_of_partial(const double* partial, int count, int phase, const ThreadIndex& at,
                                  double* sums) {
  double sum = 0;
  if (phase == 0) {
    for (int c = at.thread; c < count; c += kSumThreads) sum += partial[c];
    sums[at.thread] = sum;
  } else if (at.thread == 0) {
    for (int i = 0; i < kSumThreads; ++i) sum += sums[i];
  }
  return sum;
}

/// Adds the chunks' sums to `*sum`.
///
/// Cost   one thread block
struct AddSquares {
  const double* partial;  ///< [chunk_count]
  int chunk_count;
  double* sum;

  [[nodiscard]] Grid grid() const { return kGridOfSum; }
  [[nodiscard]] PACELINE_HD int phases() const { return 2; }
  PACELINE_HD void run(int phase, const ThreadIndex& at, float* shared) const {
    const double all = sum_of_partial(partial, chunk_count, phase, at, reinterpret_cast<double*>(shared));
    if (phase == 1 && at.thread == 0) *sum += all;
  }
};

}  // namespace paceline::engine::cuda

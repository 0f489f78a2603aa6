#pragma once

/// Kernels that compute the local rate of LARS, trust * |w| / (|g| + decay * |w|), for each parameter:
/// LarsNorms computes sums of squares of parts (chunks) of each parameter. LarsRates adds the sums of a
/// parameter's chunks and computes its rate.

#include "engine/cuda/kernels/update.h"

namespace paceline::engine::cuda {

/// A range of one parameter in the flat arrays. One thread block computes its sums of squares.
struct LarsChunk {
  std::int64_t begin;
  std::int32_t count;  ///< at most kMost
  static constexpr int kMost = 4096;
};

/// Computes two sums for each chunk: of the squared weights and of the squared gradients.
///
/// Cost   reads the chunks of both arrays once
struct LarsNorms {
  const LarsChunk* chunks;  ///< [chunk_count]
  int chunk_count;
  const float* weights;
  const float* gradients;
  double* partial;  ///< [chunk_count][2]: of weights, of gradients

  static constexpr int kSecond = 16;  ///< threads for each of the two sums in phase 1
  [[nodiscard]] Grid grid() const {
    return {.blocks = chunk_count,
            .threads = kMostThreads,
            .shared_bytes = 2 * kMostThreads * static_cast<int>(sizeof(float)) +
                            2 * kSecond * static_cast<int>(sizeof(double))};
  }
  [[nodiscard]] PACELINE_HD int phases() const { return 3; }
  PACELINE_HD void run(int phase, const ThreadIndex& at, float* shared) const {
    auto* second = reinterpret_cast<double*>(shared);
    float* first = shared + 2 * 2 * kSecond;  // behind the doubles
    const int which = at.thread / kSecond, lane = at.thread % kSecond;
    if (phase == 0) {
      const LarsChunk chunk = chunks[at.block];
      first[at.thread] = squares(weights + chunk.begin, chunk.count, at);
      first[kMostThreads + at.thread] = squares(gradients + chunk.begin, chunk.count, at);
    } else if (phase == 1 && which < 2) {
      double sum = 0;
      for (int i = lane; i < at.threads; i += kSecond)
        sum += static_cast<double>(first[which * kMostThreads + i]);
      second[at.thread] = sum;
    } else if (phase == 2 && at.thread < 2) {
      double sum = 0;
      for (int i = 0; i < kSecond; ++i) sum += second[at.thread * kSecond + i];
      partial[2 * at.block + at.thread] = sum;
    }
  }

 private:
  PACELINE_HD static float squares(const float* values, std::int32_t count, const ThreadIndex& at) {
    float sum = 0;
    PACELINE_UNROLL_4
    for (std::int32_t i = at.thread; i < count; i += at.threads) sum += values[i] * values[i];
    return sum;
  }
};

/// Computes the rates, one thread block for each slot (parameter). The rate is 1 if the parameter is a bias
/// or belongs to batch norm, or if |w| or |g| is 0.
struct LarsRates {
  /// [slot_count + 1]: slot i has chunks [first_chunk[i], first_chunk[i + 1])
  const std::int32_t* first_chunk;
  int slot_count;
  const UpdateNumbers* numbers;  ///< by slot
  const double* partial;         ///< as LarsNorms wrote them
  double* rates;                 ///< [slot_count]

  static constexpr int kThreads = 32;
  [[nodiscard]] Grid grid() const {
    return {.blocks = slot_count,
            .threads = kThreads,
            .shared_bytes = 2 * kThreads * static_cast<int>(sizeof(double))};
  }
  [[nodiscard]] PACELINE_HD int phases() const { return 2; }
  PACELINE_HD void run(int phase, const ThreadIndex& at, float* shared) const {
    auto* sums = reinterpret_cast<double*>(shared);
    if (phase == 0) {
      double weight = 0, gradient = 0;
      for (int c = first_chunk[at.block] + at.thread; c < first_chunk[at.block + 1]; c += kThreads) {
        weight += partial[2 * c];
        gradient += partial[2 * c + 1];
      }
      sums[2 * at.thread] = weight;
      sums[2 * at.thread + 1] = gradient;
    } else if (at.thread == 0) {
      double weight = 0, gradient = 0;
      for (int i = 0; i < kThreads; ++i) {
        weight += sums[2 * i];
        gradient += sums[2 * i + 1];
      }
      rates[at.block] = rate(numbers[at.block], std::sqrt(weight), std::sqrt(gradient));
    }
  }

 private:
  PACELINE_HD static double rate(const UpdateNumbers& n, double weight, double gradient) {
    // !(x <= 0), so that NaN stays NaN.
    return n.is_lars_weight != 0 && !(weight <= 0) && !(gradient <= 0)
               ? n.trust * weight / (gradient + n.exact_decay * weight)
               : 1;
  }
};

}  // namespace paceline::engine::cuda

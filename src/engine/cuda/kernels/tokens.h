#pragma once

/// Kernels of position and class token.
///
/// Shapes   values [samples][places][channels] in storage T, channels padded to a multiple of 8, of which
///          `used` are used; weights [places][used], floats

#include "engine/cuda/kernels/kernel.h"

namespace paceline::engine::cuda {

/// dst = src + the weight of the place. Padding of dst becomes 0.
///
/// Cost     reads src once, writes dst once; weights come from the cache
template <typename T>
struct AddPosition {
  std::int64_t samples;
  int places, channels, used;
  const T* src;
  const float* weight;
  T* dst;

  [[nodiscard]] PACELINE_HD std::int64_t vectors() const { return samples * places * (channels / kVector); }
  [[nodiscard]] Grid grid() const { return grid_for(vectors()); }
  PACELINE_HD void run(const ThreadIndex& at) const {
    const int lanes = channels / kVector;
    for (std::int64_t v = at.global(); v < vectors(); v += at.global_count()) {
      const int first = static_cast<int>(v % lanes) * kVector;
      const float* const own = weight + v / lanes % places * used;
      Float8 x = load8(src + v * kVector);
      PACELINE_UNROLL
      for (int k = 0; k < kVector; ++k) x.value[k] = first + k < used ? x.value[k] + own[first + k] : 0;
      store8(x, dst + v * kVector);
    }
  }
};

/// gradient[place][c] = the sum over samples of d_dst, in fp32 and in their order.
///
/// Cost     reads d_dst of the places once
template <typename T>
struct SumSamples {
  int samples;
  std::int64_t stride;  ///< elements of a sample of d_dst
  int places, channels, used;
  const T* d_dst;
  float* gradient;

  [[nodiscard]] PACELINE_HD std::int64_t elements() const { return std::int64_t{places} * used; }
  /// Small blocks: there may be few elements, and a thread has many samples.
  [[nodiscard]] Grid grid() const {
    const Grid most = grid_for(elements() * 4);
    return {.blocks = most.blocks, .threads = kMostThreads / 4, .shared_bytes = 0};
  }
  PACELINE_HD void run(const ThreadIndex& at) const {
    for (std::int64_t i = at.global(); i < elements(); i += at.global_count()) {
      const T* const from = d_dst + i / used * channels + i % used;
      float sum = 0;
      PACELINE_UNROLL_4
      for (int n = 0; n < samples; ++n) sum += load(from[n * stride]);
      gradient[i] = sum;
    }
  }
};

/// dst = the weight as the first place of each sample, and behind it the places of src.
///
/// Cost     reads src once, writes dst once
template <typename T>
struct PutToken {
  std::int64_t samples;
  int places;  ///< of src
  int channels, used;
  const T* src;
  const float* weight;
  T* dst;

  [[nodiscard]] PACELINE_HD std::int64_t vectors() const {
    return samples * (places + 1) * (channels / kVector);
  }
  [[nodiscard]] Grid grid() const { return grid_for(vectors()); }
  PACELINE_HD void run(const ThreadIndex& at) const {
    const int lanes = channels / kVector;
    for (std::int64_t v = at.global(); v < vectors(); v += at.global_count()) {
      const std::int64_t row = v / lanes, sample = row / (places + 1), place = row % (places + 1);
      const int first = static_cast<int>(v % lanes) * kVector;
      Float8 x{};
      if (place > 0) {
        x = load8(src + (sample * places + place - 1) * channels + first);
      } else {
        PACELINE_UNROLL
        for (int k = 0; k < kVector; ++k) x.value[k] = first + k < used ? weight[first + k] : 0;
      }
      store8(x, dst + v * kVector);
    }
  }
};

/// d_src = d_dst without the first place of each sample.
///
/// Cost     reads d_dst once, writes d_src once
template <typename T>
struct DropToken {
  std::int64_t samples;
  int places;  ///< of d_src
  int channels;
  const T* d_dst;
  T* d_src;

  [[nodiscard]] PACELINE_HD std::int64_t vectors() const { return samples * places * (channels / kVector); }
  [[nodiscard]] Grid grid() const { return grid_for(vectors()); }
  PACELINE_HD void run(const ThreadIndex& at) const {
    const std::int64_t lanes = channels / kVector, of_sample = places * lanes;
    for (std::int64_t v = at.global(); v < vectors(); v += at.global_count())
      store8(load8(d_dst + (v + (v / of_sample + 1) * lanes) * kVector), d_src + v * kVector);
  }
};

}  // namespace paceline::engine::cuda

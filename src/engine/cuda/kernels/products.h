#pragma once

/// Kernels of products, stochastic depth, and copies of channels (concat, slice, channel_shuffle).
///
/// Channels of arrays are padded to multiples of 8. Padding becomes what it was in the inputs, or 0.

#include "engine/cuda/kernels/elementwise.h"
#include "engine/cuda/kernels/kernel.h"

namespace paceline::engine::cuda {

/// dst = src * factor, where `pixels` adjacent rows of src share one row of factors; dst may be src.
///
/// Shapes   src, dst [items][pixels][channels]; factor [items][channels]
/// Cost     reads src once, writes dst once
template <typename T>
struct Scale {
  std::int64_t items;
  int pixels, channels;
  const T* src;
  const T* factor;
  T* dst;

  [[nodiscard]] PACELINE_HD std::int64_t vectors() const { return items * pixels * (channels / kVector); }
  [[nodiscard]] Grid grid() const { return grid_for(vectors()); }
  [[nodiscard]] PACELINE_HD int phases() const { return 1; }
  PACELINE_HD void run(int, const ThreadIndex& at, float*) const {
    const int lanes = channels / kVector;
    for (std::int64_t v = at.global(); v < vectors(); v += at.global_count()) {
      Float8 x = load8(src + v * kVector);
      const Float8 by = load8(factor + (v / lanes / pixels * lanes + v % lanes) * kVector);
      PACELINE_UNROLL
      for (int k = 0; k < kVector; ++k) x.value[k] *= by.value[k];
      store8(x, dst + v * kVector);
    }
  }
};

/// d_factor = the sum of d_dst * src over an item's pixels, in fp32 and in their order.
///
/// Shapes   as Scale
/// Cost     reads src and d_dst once
template <typename T>
struct ScaleGradient {
  std::int64_t items;
  int pixels, channels;
  const T* src;
  const T* d_dst;
  T* d_factor;

  [[nodiscard]] PACELINE_HD std::int64_t vectors() const { return items * (channels / kVector); }
  [[nodiscard]] Grid grid() const { return grid_for(vectors()); }
  [[nodiscard]] PACELINE_HD int phases() const { return 1; }
  PACELINE_HD void run(int, const ThreadIndex& at, float*) const {
    const int lanes = channels / kVector;
    for (std::int64_t v = at.global(); v < vectors(); v += at.global_count()) {
      const std::int64_t first = (v / lanes * pixels * lanes + v % lanes) * kVector;
      Float8 sum{};
      for (int pixel = 0; pixel < pixels; ++pixel) {
        const Float8 x = load8(src + first + std::int64_t{pixel} * channels);
        const Float8 d = load8(d_dst + first + std::int64_t{pixel} * channels);
        PACELINE_UNROLL
        for (int k = 0; k < kVector; ++k) sum.value[k] += x.value[k] * d.value[k];
      }
      store8(sum, d_factor + v * kVector);
    }
  }
};

/// Stochastic depth: dst = src * scale for kept samples, 0 for others; dst may be src. The decision is that
/// of DropoutMask::keeps_sample(). Forward: activations; backward: src = d_dst, dst = d_src.
///
/// Shapes   src, dst [samples][vectors * 8]
/// Cost     reads src once, writes dst once; a Philox call for 8 elements
template <typename T>
struct StochasticDepth {
  const T* src;
  T* dst;
  const StepNumbers* step;
  int samples;
  std::int64_t vectors;      ///< of a sample
  std::uint32_t key0, key1;  ///< DropoutMask::key(): seed and op
  std::uint32_t threshold;   ///< DropoutMask::threshold()
  float scale;               ///< float(1 / (1 - probability))

  [[nodiscard]] Grid grid() const { return grid_for(samples * vectors); }
  [[nodiscard]] PACELINE_HD int phases() const { return 1; }
  PACELINE_HD void run(int, const ThreadIndex& at, float*) const {
    for (std::int64_t v = at.global(); v < samples * vectors; v += at.global_count()) {
      const auto position =
          static_cast<std::uint32_t>(step->first_position) + static_cast<std::uint32_t>(v / vectors);
      const PhiloxWords words = philox({{0, position, static_cast<std::uint32_t>(step->step),
                                         static_cast<std::uint32_t>(step->step >> 32)}},
                                       key0, key1);
      Float8 x = load8(src + v * kVector);
      PACELINE_UNROLL
      for (int k = 0; k < kVector; ++k) x.value[k] = words.word[0] >= threshold ? x.value[k] * scale : 0;
      store8(x, dst + v * kVector);
    }
  }
};

/// Copies channel from + i * from_step of each row of src to channel to + i * to_step of dst.
///
/// Shapes   src [rows][src_channels], dst [rows][dst_channels], padded
/// Cost     reads and writes each copied element once, one by one
template <typename T>
struct CopyChannels {
  std::int64_t rows;
  int channels;  ///< that are copied
  const T* src;
  int src_channels, from, from_step;
  T* dst;
  int dst_channels, to, to_step;

  [[nodiscard]] Grid grid() const { return grid_for(rows * channels); }
  [[nodiscard]] PACELINE_HD int phases() const { return 1; }
  PACELINE_HD void run(int, const ThreadIndex& at, float*) const {
    for (std::int64_t i = at.global(); i < rows * channels; i += at.global_count()) {
      const std::int64_t row = i / channels, channel = i % channels;
      dst[row * dst_channels + to + channel * to_step] = src[row * src_channels + from + channel * from_step];
    }
  }
};

}  // namespace paceline::engine::cuda

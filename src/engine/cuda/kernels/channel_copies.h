#pragma once

/// The kernel of concat, slice and channel_shuffle (engine/channel_copies.h).

#include "engine/cuda/kernels/kernel.h"

namespace paceline::engine::cuda {

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
  PACELINE_HD void run(const ThreadIndex& at) const {
    for (std::int64_t i = at.global(); i < rows * channels; i += at.global_count()) {
      const std::int64_t row = i / channels, channel = i % channels;
      dst[row * dst_channels + to + channel * to_step] = src[row * src_channels + from + channel * from_step];
    }
  }
};

}  // namespace paceline::engine::cuda

#pragma once

/// LossScale: the state of the dynamic loss scale with which fp16 trains. Plain C++17, since nvcc compiles it
/// too.
///
/// Source   Micikevicius et al., "Mixed precision training", 2018; the numbers are those of PyTorch's
///          GradScaler

#include <cstdint>

namespace paceline::engine {

struct LossScale {
  float scale = 65536;        ///< a power of two; halved where a gradient overflows, and that update left out
  std::int32_t clean = 0;     ///< updates since it changed
  std::int64_t left_out = 0;  ///< updates left out so far, of this training
  bool operator==(const LossScale& other) const {
    return scale == other.scale && clean == other.clean && left_out == other.left_out;
  }
};

/// It is doubled after so many updates without an overflow, within these bounds.
inline constexpr std::int32_t kCleanUpdates = 2000;
inline constexpr float kLeastLossScale = 0x1p-24f, kMostLossScale = 0x1p40f;

}  // namespace paceline::engine

#pragma once

/// The weights of convolutions and dense layers: from the flat fp32 arrays (PyTorch's order) into the order
/// and storage that convolutions read, and their gradients back.
///
/// Both kinds of layer are one: a weight is [outs][ins][taps] in the flat arrays and [outs][taps][ins] for
/// convolutions, outs and ins padded to multiples of 8. A convolution has kernel height * width taps, a dense
/// layer as many as its input has pixels.

#include "engine/cuda/kernels/vector.h"

namespace paceline::engine::cuda {

struct WeightShape {
  int outs, padded_outs;
  int ins, padded_ins;
  int taps;
  [[nodiscard]] PACELINE_HD std::int64_t elements() const { return std::int64_t{outs} * ins * taps; }
  [[nodiscard]] PACELINE_HD std::int64_t padded_elements() const {
    return std::int64_t{padded_outs} * padded_ins * taps;
  }
};

/// A layer's weight as PackWeights finds it.
template <typename T>
struct PackedWeight {
  std::int64_t offset;  ///< in the flat array
  T* dst;               ///< [padded_outs][taps][padded_ins]
  WeightShape shape;
  int first_block;  ///< blocks_of(shape) from here on are this layer's

  static constexpr int kVectorsOfBlock = 4 * kMostThreads;
  [[nodiscard]] static int blocks_of(const WeightShape& shape) {
    const std::int64_t vectors = shape.padded_elements() / kVector;
    return static_cast<int>((vectors + kVectorsOfBlock - 1) / kVectorsOfBlock);
  }
};

/// All layers' weights in one launch; padding becomes 0. After weights were written from outside; updates
/// pack what they change themselves (update.h).
///
/// Cost   reads 4 and writes 4 or 2 bytes a weight
template <typename T>
struct PackWeights {
  const float* weights;           ///< the flat array
  const PackedWeight<T>* layers;  ///< [layer_count], in device memory, by first_block
  int layer_count;
  int blocks;  ///< of all layers

  [[nodiscard]] Grid grid() const { return {.blocks = blocks, .threads = kMostThreads, .shared_bytes = 0}; }
  [[nodiscard]] PACELINE_HD int phases() const { return 1; }
  PACELINE_HD void run(int, const ThreadIndex& at, float*) const {
    int low = 0, high = layer_count;  // the last layer whose first block is not behind this one
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (layers[middle].first_block <= at.block ? low : high) = middle;
    }
    const PackedWeight<T> layer = layers[low];
    const WeightShape shape = layer.shape;
    const std::int64_t vectors = shape.padded_elements() / kVector;
    const std::int64_t begin = std::int64_t{at.block - layer.first_block} * PackedWeight<T>::kVectorsOfBlock;
    std::int64_t end = begin + PackedWeight<T>::kVectorsOfBlock;
    if (end > vectors) end = vectors;
    const int lanes = shape.padded_ins / kVector;
    for (std::int64_t v = begin + at.thread; v < end; v += at.threads) {
      const int in = static_cast<int>(v % lanes) * kVector;
      const int tap = static_cast<int>(v / lanes % shape.taps);
      const auto out = static_cast<int>(v / lanes / shape.taps);
      Float8 values{};
      PACELINE_UNROLL
      for (int k = 0; k < kVector; ++k)
        if (out < shape.outs && in + k < shape.ins)
          values.value[k] =
              weights[layer.offset + (std::int64_t{out} * shape.ins + in + k) * shape.taps + tap];
      store8(values, layer.dst + v * kVector);
    }
  }
};

/// One layer's gradient into its part of the flat array.
///
/// Cost   reads 4 or 2 and writes 4 bytes a weight
template <typename T>
struct UnpackGradient {
  const T* src;     ///< [padded_outs][taps][padded_ins]
  float* gradient;  ///< [outs][ins][taps]
  WeightShape shape;

  [[nodiscard]] Grid grid() const { return grid_for(shape.elements()); }
  [[nodiscard]] PACELINE_HD int phases() const { return 1; }
  PACELINE_HD void run(int, const ThreadIndex& at, float*) const {
    for (std::int64_t i = at.global(); i < shape.elements(); i += at.global_count()) {
      const std::int64_t tap = i % shape.taps, in = i / shape.taps % shape.ins;
      const std::int64_t out = i / shape.taps / shape.ins;
      gradient[i] = load(src[(out * shape.taps + tap) * shape.padded_ins + in]);
    }
  }
};

}  // namespace paceline::engine::cuda

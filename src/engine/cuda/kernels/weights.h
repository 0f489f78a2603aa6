#pragma once

/// Kernels that copy the weights of convolutions and dense layers from the flat fp32 array (PyTorch's order)
/// to the order and storage that convolutions read ("packed"), and their gradients back.
///
/// Layouts  for both kinds of layer a weight is [outs][ins][taps] in the flat arrays, and [outs][taps][ins]
///          when packed, with outs and ins padded to multiples of 8; ins of several groups are not padded. A
///          convolution has kernel height * width taps; a dense layer has a tap for each pixel of its input

#include "engine/cuda/kernels/kernel.h"

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

/// A layer's weight and its packed copy.
template <typename T>
struct PackedWeight {
  std::int64_t offset;  ///< in the flat array
  T* dst;               ///< [padded_outs][taps][padded_ins]
  WeightShape shape;
  int first_block;  ///< the layer's blocks are [first_block, first_block + blocks_of(shape))

  static constexpr int kVectorsOfBlock = 4 * kMostThreads;
  [[nodiscard]] static int blocks_of(const WeightShape& shape) {
    const std::int64_t vectors = shape.padded_elements() / kVector;
    return static_cast<int>((vectors + kVectorsOfBlock - 1) / kVectorsOfBlock);
  }
};

/// Packs the weights of all layers in one launch; padding becomes 0. Used after weights were written from
/// outside, since updates pack the weights themselves (update.h).
///
/// Cost   reads 4 and writes 4 or 2 bytes for each weight
template <typename T>
struct PackWeights {
  const float* weights;           ///< the flat array
  const PackedWeight<T>* layers;  ///< [layer_count], in device memory, ordered by first_block
  int layer_count;
  int blocks;  ///< of all layers

  [[nodiscard]] Grid grid() const { return {.blocks = blocks, .threads = kMostThreads, .shared_bytes = 0}; }
  PACELINE_HD void run(const ThreadIndex& at) const {
    int low = 0, high = layer_count;  // find the last layer with first_block <= at.block
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
    for (std::int64_t v = begin + at.thread; v < end; v += at.threads) {
      Float8 values{};
      if (shape.padded_ins % kVector == 0) {
        const int lanes = shape.padded_ins / kVector;
        const int in = static_cast<int>(v % lanes) * kVector;
        PACELINE_UNROLL
        for (int k = 0; k < kVector; ++k) values.value[k] = value(layer, v / lanes, in + k);
      } else {  // a vector spans taps, and perhaps output channels
        PACELINE_UNROLL
        for (int k = 0; k < kVector; ++k) {
          const std::int64_t i = v * kVector + k;
          values.value[k] = value(layer, i / shape.padded_ins, static_cast<int>(i % shape.padded_ins));
        }
      }
      store8(values, layer.dst + v * kVector);
    }
  }

 private:
  /// `row`: out * taps + tap.
  PACELINE_HD float value(const PackedWeight<T>& layer, std::int64_t row, int in) const {
    const WeightShape& shape = layer.shape;
    const std::int64_t out = row / shape.taps, tap = row % shape.taps;
    if (out >= shape.outs || in >= shape.ins) return 0;
    return weights[layer.offset + (out * shape.ins + in) * shape.taps + tap];
  }
};

/// Copies the gradient of one layer to the flat array.
///
/// Cost   reads 4 or 2 and writes 4 bytes for each weight
template <typename T>
struct UnpackGradient {
  const T* src;     ///< [padded_outs][taps][padded_ins]
  float* gradient;  ///< [outs][ins][taps]
  WeightShape shape;

  [[nodiscard]] Grid grid() const { return grid_for(shape.elements()); }
  PACELINE_HD void run(const ThreadIndex& at) const {
    for (std::int64_t i = at.global(); i < shape.elements(); i += at.global_count()) {
      const std::int64_t tap = i % shape.taps, in = i / shape.taps % shape.ins;
      const std::int64_t out = i / shape.taps / shape.ins;
      gradient[i] = load(src[(out * shape.taps + tap) * shape.padded_ins + in]);
    }
  }
};

}  // namespace paceline::engine::cuda

#pragma once

/// traffic_of(kernel) estimates the bytes that a kernel reads and writes in device memory, for predictions
/// (simulated_runtime.h). Each array counts once, as the kernels' Cost lines say.
///
/// Kernels without an overload here (sums of partial sums, loss, statistics) move little and count as 0
/// bytes.

#include <cstdint>

#include "engine/cuda/kernels/table.h"

namespace paceline::engine::cuda {

template <typename Kernel>
std::int64_t traffic_of(const Kernel&) {
  return 0;
}

template <typename T>
std::int64_t bytes_of_rows(const Columns& columns) {
  return columns.rows * columns.groups * columns.channels * static_cast<std::int64_t>(sizeof(T));
}
template <typename T>
std::int64_t bytes_of_vectors(std::int64_t vectors) {
  return vectors * kVector * static_cast<std::int64_t>(sizeof(T));
}

template <typename Function, typename T>
std::int64_t traffic_of(const Map1<Function, T>& kernel) {
  return 2 * bytes_of_vectors<T>(kernel.vectors);
}
template <typename Function, typename T>
std::int64_t traffic_of(const Map2<Function, T>& kernel) {
  return 3 * bytes_of_vectors<T>(kernel.vectors);
}
template <typename T>
std::int64_t traffic_of(const InputImages<T>& kernel) {
  return kernel.filled * kernel.channels * 4 + bytes_of_vectors<T>(kernel.pixels * kernel.padded / kVector);
}
template <typename T>
std::int64_t traffic_of(const GatherImages<T>& kernel) {
  return std::int64_t{1} * kernel.samples * (kernel.height * kernel.width * kernel.channels + 20) +
         bytes_of_vectors<T>(kernel.pixels * kernel.padded / kVector);
}
template <typename T>
std::int64_t traffic_of(const Dropout<T>& kernel) {
  return 2 *
         bytes_of_vectors<T>(std::int64_t{1} * kernel.samples * kernel.pixels * kernel.channels / kVector);
}

template <typename T>
std::int64_t traffic_of(const Scale<T>& kernel) {
  return 2 * bytes_of_vectors<T>(kernel.vectors());
}
template <typename T>
std::int64_t traffic_of(const ScaleGradient<T>& kernel) {
  return 2 * bytes_of_vectors<T>(kernel.vectors() * kernel.pixels);
}
template <typename T>
std::int64_t traffic_of(const StochasticDepth<T>& kernel) {
  return 2 * bytes_of_vectors<T>(kernel.samples * kernel.vectors);
}
template <typename T>
std::int64_t traffic_of(const CopyChannels<T>& kernel) {
  return 2 * kernel.rows * kernel.channels * static_cast<std::int64_t>(sizeof(T));
}
template <typename T>
std::int64_t traffic_of(const PlaceImage<T>& kernel) {
  return 2 * kernel.elements() * static_cast<std::int64_t>(sizeof(T));
}

template <typename T>
std::int64_t traffic_of(const AddPosition<T>& kernel) {
  return 2 * bytes_of_vectors<T>(kernel.vectors());
}
template <typename T>
std::int64_t traffic_of(const SumSamples<T>& kernel) {
  return kernel.elements() * (kernel.samples * static_cast<std::int64_t>(sizeof(T)) + 4);
}
template <typename T>
std::int64_t traffic_of(const PutToken<T>& kernel) {
  return 2 * bytes_of_vectors<T>(kernel.vectors());
}
template <typename T>
std::int64_t traffic_of(const DropToken<T>& kernel) {
  return 2 * bytes_of_vectors<T>(kernel.vectors());
}
/// Bytes of `src` arrays as large as attention's input, and of `dst` as large as its output.
template <typename T>
std::int64_t bytes_of_attention(const AttentionShape& shape, int src, int dst) {
  return std::int64_t{shape.samples} * shape.places * (src * shape.src_channels + dst * shape.dst_channels) *
         static_cast<std::int64_t>(sizeof(T));
}
template <typename T>
std::int64_t traffic_of(const AttentionForward<T>& kernel) {
  return bytes_of_attention<T>(kernel.shape, 1, 1);
}
template <typename T>
std::int64_t traffic_of(const AttentionGradientOfQueries<T>& kernel) {
  return bytes_of_attention<T>(kernel.shape, 1, 3);  // of d_src a third
}
template <typename T>
std::int64_t traffic_of(const AttentionGradientOfKeys<T>& kernel) {
  return bytes_of_attention<T>(kernel.shape, 1, 3);  // two thirds
}

template <typename T>
std::int64_t traffic_of(const BatchNormSums<T>& kernel) {
  return bytes_of_rows<T>(kernel.columns);
}
template <typename T>
std::int64_t traffic_of(const BatchNormApply<T>& kernel) {
  return (kernel.residual != nullptr ? 3 : 2) * bytes_of_rows<T>(kernel.columns);
}
/// The number of arrays that are read.
template <typename T>
std::int64_t arrays_of(const MaskedGradient<T>& gradient) {
  return 2 + (gradient.dst != nullptr ? 1 : 0) + (gradient.d_dst2 != nullptr ? 1 : 0);
}
template <typename T, ReluMask kMask, bool kTwoTerms, bool kStores>
std::int64_t traffic_of(const BatchNormGradientSums<T, kMask, kTwoTerms, kStores>& kernel) {
  return (arrays_of(kernel.gradient) + (kernel.d_masked != nullptr ? 1 : 0)) *
         bytes_of_rows<T>(kernel.columns);
}
template <typename T, ReluMask kMask>
std::int64_t traffic_of(const BatchNormGradientApply<T, kMask>& kernel) {
  return (arrays_of(kernel.gradient) + 1) * bytes_of_rows<T>(kernel.columns);
}

template <typename T>
std::int64_t bytes_of_rows(const RowThreads& rows) {
  return rows.rows * rows.channels * static_cast<std::int64_t>(sizeof(T));
}
template <typename T>
std::int64_t traffic_of(const LayerNormForward<T>& kernel) {
  return 2 * bytes_of_rows<T>(kernel.rows) + (kernel.statistics != nullptr ? 8 * kernel.rows.rows : 0);
}
template <typename T>
std::int64_t traffic_of(const LayerNormGradient<T>& kernel) {
  return 3 * bytes_of_rows<T>(kernel.rows) + 8 * kernel.rows.rows;
}
template <typename T>
std::int64_t traffic_of(const RowGradientSums<T>& kernel) {
  return 2 * bytes_of_rows<T>(kernel.columns) + (kernel.statistics != nullptr ? 8 * kernel.columns.rows : 0);
}
template <typename T>
std::int64_t traffic_of(const ScaleChannels<T>& kernel) {
  return 2 * bytes_of_rows<T>(kernel.columns);
}

template <typename T>
std::int64_t traffic_of(const BiasAdd<T>& kernel) {
  return 2 * bytes_of_rows<T>(kernel.columns);
}
template <typename T>
std::int64_t traffic_of(const BiasGradientSums<T>& kernel) {
  return (1 + (kernel.dst != nullptr ? 1 : 0) + (kernel.d_masked != nullptr ? 1 : 0)) *
         bytes_of_rows<T>(kernel.columns);
}

/// The positions of maxima take two bytes for each element.
template <typename T>
std::int64_t traffic_of(const MaxPoolForward<T>& kernel) {
  return bytes_of_vectors<T>(kernel.shape.src_vectors() + kernel.shape.dst_vectors()) +
         (kernel.winner != nullptr ? bytes_of_vectors<Bf16>(kernel.shape.dst_vectors()) : 0);
}
template <typename T>
std::int64_t traffic_of(const MaxPoolBackward<T>& kernel) {
  return bytes_of_vectors<T>(kernel.shape.src_vectors() + kernel.shape.dst_vectors()) +
         bytes_of_vectors<Bf16>(kernel.shape.dst_vectors());
}
template <typename T>
std::int64_t traffic_of(const AveragePoolForward<T>& kernel) {
  return bytes_of_vectors<T>(kernel.shape.src_vectors() + kernel.shape.dst_vectors());
}
template <typename T>
std::int64_t traffic_of(const AveragePoolBackward<T>& kernel) {
  return bytes_of_vectors<T>(kernel.shape.src_vectors() + kernel.shape.dst_vectors());
}
template <typename T>
std::int64_t traffic_of(const GlobalAveragePoolForward<T>& kernel) {
  return bytes_of_vectors<T>(kernel.vectors() * (kernel.pixels + 1));
}
template <typename T>
std::int64_t traffic_of(const GlobalAveragePoolBackward<T>& kernel) {
  return bytes_of_vectors<T>(kernel.vectors() + kernel.vectors() / kernel.pixels);
}

/// Counts the last block of each layer, and the last chunk of each parameter, as full, and every weight as
/// packed.
template <typename T>
std::int64_t traffic_of(const PackWeights<T>& kernel) {
  return std::int64_t{1} * kernel.blocks * PackedWeight<T>::kVectorsOfBlock * kVector *
         static_cast<std::int64_t>(sizeof(float) + sizeof(T));
}
template <typename T>
std::int64_t traffic_of(const UnpackGradient<T>& kernel) {
  return kernel.shape.elements() * static_cast<std::int64_t>(sizeof(float) + sizeof(T));
}
template <typename Rule, typename T>
std::int64_t traffic_of(const Update<Rule, T>& kernel) {
  return kernel.elements * (12 + (kernel.first != nullptr ? 8 : 0) + (kernel.second != nullptr ? 8 : 0) +
                            (kernel.layers != nullptr ? static_cast<std::int64_t>(sizeof(T)) : 0));
}
inline std::int64_t traffic_of(const LarsNorms& kernel) {
  return 8 * std::int64_t{kernel.chunk_count} * LarsChunk::kMost;
}
inline std::int64_t traffic_of(const ArrayFill& kernel) { return 4 * kernel.count; }
inline std::int64_t traffic_of(const ArrayCopy& kernel) { return 8 * kernel.count; }
inline std::int64_t traffic_of(const ArrayAdd& kernel) { return 12 * kernel.count; }

}  // namespace paceline::engine::cuda

// Layer norm, group norm and learned factors of the channels.

#include <cstdint>

#include "engine/cuda/kernels/kernel_cases.h"

namespace paceline::engine::cuda {
namespace {

std::vector<ImageShape> norm_shapes(bool is_small) {
  if (is_small) return {{2, 4, 2, 1}};
  return {{3, 12, 9, 7}, {2, 96, 14, 14}, {5, 300, 1, 1}};
}

/// Means and inverse deviations.
template <typename T>
std::vector<T> random_sample_statistics(std::mt19937& generator, std::int64_t groups) {
  const auto values = random_values<float>(generator, static_cast<std::size_t>(2 * groups));
  std::vector<T> statistics;
  for (std::size_t i = 0; i < values.size(); ++i)
    statistics.push_back(static_cast<T>(i % 2 == 0 ? values[i] : 0.3 + std::abs(values[i])));
  return statistics;
}

template <typename T>
void add_layer_norm(KernelCases& cases, const ImageShape& shape) {
  const RowThreads rows{shape.rows(), shape.padded()};
  const auto channels = static_cast<std::size_t>(shape.channels);
  for (const bool stores : {false, true})
    cases.add(named<T>("LayerNormForward"), [=](KernelArrays& arrays, std::mt19937& generator) {
      const T* src = arrays.input(random_images<T>(generator, shape));
      const float* weight = arrays.input(random_floats(generator, channels));
      const float* bias = arrays.input(random_floats(generator, channels));
      T* dst = arrays.output<T>(shape.stored_elements());
      float* statistics = stores ? arrays.output<float>(static_cast<std::size_t>(2 * shape.rows())) : nullptr;
      return LayerNormForward<T>{rows, shape.channels, src, dst, weight, bias, 1e-5f, statistics};
    });
  cases.add(named<T>("LayerNormGradient, in place"), [=](KernelArrays& arrays, std::mt19937& generator) {
    const T* src = arrays.input(random_images<T>(generator, shape));
    T* d_dst = arrays.in_place(random_images<T>(generator, shape));
    const float* weight = arrays.input(random_floats(generator, channels));
    const float* statistics = arrays.input(random_sample_statistics<float>(generator, shape.rows()));
    return LayerNormGradient<T>{rows, shape.channels, src, d_dst, d_dst, weight, statistics};
  });
  for (const bool normalised : {false, true})
    cases.add(named<T>("RowGradientSums"), [=](KernelArrays& arrays, std::mt19937& generator) {
      const auto columns = Columns::for_sums(shape.rows(), 1, shape.padded());
      const T* src = arrays.input(random_images<T>(generator, shape));
      const T* d_dst = arrays.input(random_images<T>(generator, shape));
      const float* statistics =
          normalised ? arrays.input(random_sample_statistics<float>(generator, shape.rows())) : nullptr;
      const auto partials = static_cast<std::size_t>(2 * columns.row_blocks * shape.padded());
      return RowGradientSums<T>{columns, src, d_dst, statistics, arrays.output<double>(partials)};
    });
  cases.add(named<T>("ScaleChannels"), [=](KernelArrays& arrays, std::mt19937& generator) {
    const T* src = arrays.input(random_images<T>(generator, shape));
    const float* weight = arrays.input(random_floats(generator, channels));
    return ScaleChannels<T>{Columns::for_rows(shape.rows(), 1, shape.padded()), shape.channels, src,
                            arrays.output<T>(shape.stored_elements()), weight};
  });
}

void add_row_gradients(KernelCases& cases, const ImageShape& shape) {
  const auto channels = static_cast<std::size_t>(shape.channels);
  for (const bool has_bias : {false, true})
    cases.add("RowGradients", [=](KernelArrays& arrays, std::mt19937& generator) {
      constexpr int kParts = 19;
      const auto partials = static_cast<std::size_t>(2 * kParts * shape.padded());
      const double* partial = arrays.input(random_doubles(generator, partials));
      float* d_bias = has_bias ? arrays.output<float>(channels) : nullptr;
      return RowGradients{
          {partial, 1, kParts, shape.padded()}, shape.channels, d_bias, arrays.output<float>(channels)};
    });
}

void add_group_norm(KernelCases& cases, const ImageShape& image, int parts) {
  const GroupNormShape shape{.samples = image.samples,
                             .groups = 4,
                             .parts = parts,
                             .channels = image.padded(),
                             .used = image.channels,
                             .pixels = image.pixels()};
  const auto channels = static_cast<std::size_t>(image.channels);
  const auto of_samples = static_cast<std::size_t>(shape.samples * shape.channels);
  const std::size_t partials = 2 * of_samples * static_cast<std::size_t>(parts);
  const std::int64_t groups = std::int64_t{1} * shape.samples * shape.groups;
  cases.add("GroupNormStatistics", [=](KernelArrays& arrays, std::mt19937& generator) {
    std::vector<double> sums = random_doubles(generator, partials, 0, 3);
    for (std::size_t i = 0; i < sums.size(); ++i)  // squares are never negative
      if (i / static_cast<std::size_t>(shape.channels) % 2 == 1)
        sums[i] = 20 + std::abs(sums[i]) * static_cast<double>(shape.pixels);
    const double* partial = arrays.input(sums);
    const float* weight = arrays.input(random_floats(generator, channels));
    const float* bias = arrays.input(random_floats(generator, channels));
    float* parameters = arrays.output<float>(3 * of_samples);
    double* statistics = arrays.output<double>(static_cast<std::size_t>(2 * groups));
    return GroupNormStatistics{shape, partial, 1e-5, weight, bias, parameters, statistics};
  });
  cases.add("GroupNormCoefficients", [=](KernelArrays& arrays, std::mt19937& generator) {
    const double* partial = arrays.input(random_doubles(generator, partials));
    const float* weight = arrays.input(random_floats(generator, channels));
    const double* statistics = arrays.input(random_sample_statistics<double>(generator, groups));
    return GroupNormCoefficients{shape, partial, weight, statistics, arrays.output<float>(2 * of_samples)};
  });
  cases.add("GroupNormGradients", [=](KernelArrays& arrays, std::mt19937& generator) {
    const double* partial = arrays.input(random_doubles(generator, partials));
    const double* statistics = arrays.input(random_sample_statistics<double>(generator, groups));
    float* d_bias = arrays.output<float>(channels);
    return GroupNormGradients{shape, partial, statistics, d_bias, arrays.output<float>(channels)};
  });
}

}  // namespace

void add_sample_norm_cases(KernelCases& cases) {
  for (const ImageShape& shape : norm_shapes(cases.is_small)) {
    for_each_storage([&]<typename T>(T) { add_layer_norm<T>(cases, shape); });
    add_row_gradients(cases, shape);
    for (const int parts : {1, 3}) add_group_norm(cases, shape, parts);
  }
}

}  // namespace paceline::engine::cuda

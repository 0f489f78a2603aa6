// Kernels of tokens: position, class token, attention.

#include <cstdint>

#include "engine/cuda/kernels/kernel_cases.h"

namespace paceline::engine::cuda {
namespace {

/// What exp of two libraries may differ by, in sums of a few hundred products of numbers of about 1.
template <typename T>
bool is_near_attention(const std::byte* device, const std::byte* host) {
  T of_device, of_host;
  std::memcpy(&of_device, device, sizeof(T));
  std::memcpy(&of_host, host, sizeof(T));
  const double got = static_cast<double>(load(of_device)), expected = static_cast<double>(load(of_host));
  const double size = std::abs(expected);
  return std::abs(got - expected) <= (sizeof(T) == 2 ? 0x1p-7 * size : 0) + 0x1p-16 * (1 + size);
}

struct AttentionCase {
  int samples, places, heads, width;
  [[nodiscard]] ImageShape src() const { return {samples, 3 * heads * width, places, 1}; }
  [[nodiscard]] ImageShape dst() const { return {samples, heads * width, places, 1}; }
  [[nodiscard]] AttentionShape shape() const {
    return {samples, places, heads, width, src().padded(), dst().padded(), 0.25f};
  }
  [[nodiscard]] std::size_t rows() const {
    return static_cast<std::size_t>(samples) * static_cast<std::size_t>(heads) *
           static_cast<std::size_t>(places);
  }
  /// Largest product, 1 / sum, mean gradient; sums of exponentials are 1 or more.
  [[nodiscard]] std::vector<float> statistics(std::mt19937& generator) const {
    std::vector<float> values = positive_floats(generator, 3 * rows());
    for (std::size_t row = 0; row < rows(); ++row) values[3 * row + 1] = 1 / (1 + values[3 * row + 1]);
    return values;
  }
};

template <typename T>
void add_attention(KernelCases& cases, const AttentionCase& c) {
  cases.add(named<T>("AttentionForward"), [=](KernelArrays& arrays, std::mt19937& generator) {
    const T* src = arrays.input(random_images<T>(generator, c.src()));
    T* dst = arrays.output<T>(c.dst().stored_elements(), is_near_attention<T>);
    // The third number of a row is not written here.
    const std::vector<float> before(3 * c.rows(), 0.0f);
    return AttentionForward<T>{c.shape(), src, dst, arrays.in_place(before, is_near_attention<float>)};
  });
  cases.add(named<T>("AttentionGradientOfQueries"), [=](KernelArrays& arrays, std::mt19937& generator) {
    const T* src = arrays.input(random_images<T>(generator, c.src()));
    const T* dst = arrays.input(random_images<T>(generator, c.dst()));
    const T* d_dst = arrays.input(random_images<T>(generator, c.dst()));
    float* statistics = arrays.in_place(c.statistics(generator), is_near_attention<float>);
    // Of each place it writes q's third.
    T* d_src = arrays.in_place(random_images<T>(generator, c.src()), is_near_attention<T>);
    return AttentionGradientOfQueries<T>{c.shape(), src, dst, d_dst, statistics, d_src};
  });
  cases.add(named<T>("AttentionGradientOfKeys"), [=](KernelArrays& arrays, std::mt19937& generator) {
    const T* src = arrays.input(random_images<T>(generator, c.src()));
    const T* d_dst = arrays.input(random_images<T>(generator, c.dst()));
    const float* statistics = arrays.input(c.statistics(generator));
    T* d_src = arrays.in_place(random_images<T>(generator, c.src()), is_near_attention<T>);
    return AttentionGradientOfKeys<T>{c.shape(), src, d_dst, statistics, d_src};
  });
}

template <typename T>
void add_tokens(KernelCases& cases, const ImageShape& shape) {
  const auto weights = static_cast<std::size_t>(shape.pixels() * shape.channels);
  const ImageShape longer{shape.samples, shape.channels, shape.pixels() + 1, 1};
  cases.add(named<T>("AddPosition"), [=](KernelArrays& arrays, std::mt19937& generator) {
    const T* src = arrays.input(random_images<T>(generator, shape));
    const float* weight = arrays.input(random_floats(generator, weights));
    return AddPosition<T>{shape.samples,
                          shape.pixels(),
                          shape.padded(),
                          shape.channels,
                          src,
                          weight,
                          arrays.output<T>(shape.stored_elements())};
  });
  cases.add(named<T>("SumSamples"), [=](KernelArrays& arrays, std::mt19937& generator) {
    const T* d_dst = arrays.input(random_images<T>(generator, shape));
    return SumSamples<T>{shape.samples,
                         std::int64_t{1} * shape.pixels() * shape.padded(),
                         shape.pixels(),
                         shape.padded(),
                         shape.channels,
                         d_dst,
                         arrays.output<float>(weights)};
  });
  cases.add(named<T>("PutToken"), [=](KernelArrays& arrays, std::mt19937& generator) {
    const T* src = arrays.input(random_images<T>(generator, shape));
    const float* weight = arrays.input(random_floats(generator, static_cast<std::size_t>(shape.channels)));
    return PutToken<T>{shape.samples,
                       shape.pixels(),
                       shape.padded(),
                       shape.channels,
                       src,
                       weight,
                       arrays.output<T>(longer.stored_elements())};
  });
  cases.add(named<T>("DropToken"), [=](KernelArrays& arrays, std::mt19937& generator) {
    const T* d_dst = arrays.input(random_images<T>(generator, longer));
    return DropToken<T>{shape.samples, shape.pixels(), shape.padded(), d_dst,
                        arrays.output<T>(shape.stored_elements())};
  });
}

}  // namespace

void add_token_cases(KernelCases& cases) {
  const std::vector<AttentionCase> attentions =
      cases.is_small ? std::vector<AttentionCase>{{1, 3, 1, 3}}
                     : std::vector<AttentionCase>{{2, 65, 3, 64}, {3, 17, 2, 5}, {1, 40, 1, 130}};
  const std::vector<ImageShape> tokens =
      cases.is_small ? std::vector<ImageShape>{{2, 3, 2, 1}}
                     : std::vector<ImageShape>{{5, 13, 9, 7}, {3, 130, 1, 1}, {33, 64, 14, 14}};
  for_each_storage([&]<typename T>(T) {
    for (const AttentionCase& attention : attentions) add_attention<T>(cases, attention);
    for (const ImageShape& shape : tokens) add_tokens<T>(cases, shape);
  });
}

}  // namespace paceline::engine::cuda

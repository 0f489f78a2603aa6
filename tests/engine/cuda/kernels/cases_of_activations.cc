// Elementwise kernels, biases, dropout, pooling.

#include <cstdint>

#include "engine/cuda/kernels/kernel_cases.h"

namespace paceline::engine::cuda {
namespace {

/// One neighbour in T, or what erff, expf and tanhf of two libraries may differ by for inputs of a few units.
template <typename T>
bool is_near_function(const std::byte* device, const std::byte* host) {
  T of_device, of_host;
  std::memcpy(&of_device, device, sizeof(T));
  std::memcpy(&of_host, host, sizeof(T));
  const double got = static_cast<double>(load(of_device)), expected = static_cast<double>(load(of_host));
  const double size = std::abs(expected);
  return std::abs(got - expected) <= (sizeof(T) == 2 ? 0x1p-7 * size : 0) + 0x1p-19 * (1 + size);
}

/// Ops of comparisons, sums and products have the same bits everywhere.
template <typename T>
IsNear nearness(std::string_view op) {
  const bool has_function = op == "gelu" || op == "silu" || op == "sigmoid" || op == "tanh";
  return has_function ? is_near_function<T> : has_same_bits<T>;
}

template <typename T>
std::vector<T> random_vectors(std::mt19937& generator, std::int64_t vectors) {
  return Stored<T>(random_values<T>(generator, static_cast<std::size_t>(8 * vectors))).values();
}

template <typename Kernel, typename T>
void add_map1(KernelCases& cases, const std::string& name, std::int64_t vectors,
              IsNear is_near = has_same_bits<T>) {
  cases.add(name, [=](KernelArrays& arrays, std::mt19937& generator) {
    const T* src = arrays.input(random_vectors<T>(generator, vectors));
    return Kernel{src, arrays.output<T>(static_cast<std::size_t>(8 * vectors), is_near), vectors};
  });
}

template <typename Kernel, typename T>
void add_map2(KernelCases& cases, const std::string& name, std::int64_t vectors,
              IsNear is_near = has_same_bits<T>) {
  cases.add(name, [=](KernelArrays& arrays, std::mt19937& generator) {
    const T* first = arrays.input(random_vectors<T>(generator, vectors));
    const T* second = arrays.input(random_vectors<T>(generator, vectors));
    return Kernel{first, second, arrays.output<T>(static_cast<std::size_t>(8 * vectors), is_near), vectors};
  });
  cases.add(name + ", in place", [=](KernelArrays& arrays, std::mt19937& generator) {
    T* first = arrays.in_place(random_vectors<T>(generator, vectors), is_near);
    const T* second = arrays.input(random_vectors<T>(generator, vectors));
    return Kernel{first, second, first, vectors};
  });
}

std::vector<ImageShape> bias_shapes(bool is_small) {
  if (is_small) return {{2, 3, 2, 2}};
  return {{8, 64, 9, 7}, {2, 130, 12, 13}, {4, 10, 40, 40}};
}

}  // namespace

void add_elementwise_cases(KernelCases& cases) {
  for_each_storage([&]<typename T>(T) {
    for (const int vectors : cases.is_small ? std::vector{3} : std::vector{257, 3001}) {
#define PACELINE_CASES(Op, name)                                         \
  add_map1<Op<T>, T>(cases, named<T>(#Op), vectors, nearness<T>(#name)); \
  add_map2<Op##Backward<T>, T>(cases, named<T>(#Op "Backward"), vectors, nearness<T>(#name));
      PACELINE_ELEMENTWISE_OPS(PACELINE_CASES)
#undef PACELINE_CASES
      add_map2<Add<T>, T>(cases, named<T>("Add"), vectors);
      add_map2<AddRelu<T>, T>(cases, named<T>("AddRelu"), vectors);
    }
  });
  if (cases.is_small) return;
  // More vectors than the largest grid has threads.
  cases.add("Relu bf16, large", [](KernelArrays& arrays, std::mt19937& generator) {
    const std::vector<Bf16> pattern = random_vectors<Bf16>(generator, 1001);
    std::vector<Bf16> values(8 * (2048 * 256 + 100));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = pattern[i % pattern.size()];
    const Bf16* src = arrays.input(values);
    return Relu<Bf16>{src, arrays.output<Bf16>(values.size()), static_cast<std::int64_t>(values.size() / 8)};
  });
}

void add_bias_cases(KernelCases& cases) {
  for (const ImageShape& shape : bias_shapes(cases.is_small)) {
    const auto channels = static_cast<std::size_t>(shape.channels);
    const auto padded = static_cast<std::size_t>(shape.padded());
    for_each_storage([&]<typename T>(T) {
      for (const bool relu : {false, true})
        cases.add(named<T>("BiasAdd"), [=](KernelArrays& arrays, std::mt19937& generator) {
          const T* src = arrays.input(random_images<T>(generator, shape));
          const float* bias = arrays.input(random_floats(generator, channels));
          return BiasAdd<T>{Columns::for_rows(shape.rows(), 1, shape.padded()),
                            src,
                            arrays.output<T>(shape.stored_elements()),
                            bias,
                            shape.channels,
                            relu};
        });
      for (const bool relu : {false, true})
        cases.add(named<T>("BiasGradientSums"), [=](KernelArrays& arrays, std::mt19937& generator) {
          const auto columns = Columns::for_sums(shape.rows() / 2, 2, shape.padded());
          const T* d_dst = arrays.input(random_images<T>(generator, shape));
          const T* dst = relu ? arrays.input(random_images<T>(generator, shape)) : nullptr;
          T* d_masked = relu ? arrays.output<T>(shape.stored_elements()) : nullptr;
          const auto partials = static_cast<std::size_t>(columns.row_blocks) * 2 * padded;
          return BiasGradientSums<T>{columns, d_dst, dst, d_masked, arrays.output<double>(partials)};
        });
    });
    for (const int parts : {1, 19})
      cases.add("BiasGradient", [=](KernelArrays& arrays, std::mt19937& generator) {
        const auto sums = static_cast<std::size_t>(2 * parts) * padded;
        const double* partial = arrays.input(random_doubles(generator, sums));
        return BiasGradient{{partial, 2, parts, shape.padded()},
                            shape.channels,
                            arrays.output<float>(2 * padded + 4),
                            shape.padded() + 4};
      });
  }
}

void add_product_cases(KernelCases& cases) {
  const std::vector<ImageShape> shapes =
      cases.is_small ? std::vector<ImageShape>{{2, 3, 2, 1}}
                     : std::vector<ImageShape>{{5, 13, 9, 7}, {3, 130, 1, 1}, {2, 64, 20, 20}};
  for (const ImageShape& shape : shapes)
    for_each_storage([&]<typename T>(T) {
      const ImageShape factors{shape.samples, shape.channels};
      cases.add(named<T>("Scale"), [=](KernelArrays& arrays, std::mt19937& generator) {
        const T* src = arrays.input(random_images<T>(generator, shape));
        const T* factor = arrays.input(random_images<T>(generator, factors));
        return Scale<T>{shape.samples, shape.pixels(), shape.padded(),
                        src,           factor,         arrays.output<T>(shape.stored_elements())};
      });
      cases.add(named<T>("ScaleGradient"), [=](KernelArrays& arrays, std::mt19937& generator) {
        const T* src = arrays.input(random_images<T>(generator, shape));
        const T* d_dst = arrays.input(random_images<T>(generator, shape));
        return ScaleGradient<T>{shape.samples, shape.pixels(), shape.padded(),
                                src,           d_dst,          arrays.output<T>(factors.stored_elements())};
      });
      cases.add(named<T>("StochasticDepth"), [=](KernelArrays& arrays, std::mt19937& generator) {
        const T* src = arrays.input(random_images<T>(generator, shape));
        const StepNumbers* step = arrays.input(std::vector<StepNumbers>{
            {.step = 0x700000003ull, .first_position = (std::int64_t{1} << 32) - 1}});
        return StochasticDepth<T>{.src = src,
                                  .dst = arrays.output<T>(shape.stored_elements()),
                                  .step = step,
                                  .samples = shape.samples,
                                  .vectors = shape.pixels() * shape.padded() / 8,
                                  .key0 = 0x89abcdefu,
                                  .key1 = 0x01234567u,
                                  .threshold = 0x7ccccccdu,
                                  .scale = 1 / 0.5f};
      });
      // More rows and less columns, channels moved: of each side some is cut off and some is added.
      cases.add(named<T>("PlaceImage"), [=](KernelArrays& arrays, std::mt19937& generator) {
        const ImageShape to{shape.samples, shape.channels + 3, shape.height + 2, shape.width};
        return PlaceImage<T>{.samples = shape.samples,
                             .from = arrays.input(random_images<T>(generator, shape)),
                             .from_image = {shape.height, shape.width, shape.channels, shape.padded()},
                             .to = arrays.output<T>(to.stored_elements()),
                             .to_image = {to.height, to.width, to.channels, to.padded()},
                             .row = 2,
                             .column = -1,
                             .channel = 2};
      });
      // Every second channel of the destination is left as it was.
      cases.add(named<T>("CopyChannels"), [=](KernelArrays& arrays, std::mt19937& generator) {
        const ImageShape to{shape.samples, 2 * shape.channels + 1, shape.height, shape.width};
        const T* src = arrays.input(random_images<T>(generator, shape));
        return CopyChannels<T>{.rows = shape.rows(),
                               .channels = shape.channels,
                               .src = src,
                               .src_channels = shape.padded(),
                               .from = 0,
                               .from_step = 1,
                               .dst = arrays.in_place(random_images<T>(generator, to)),
                               .dst_channels = to.padded(),
                               .to = 1,
                               .to_step = 2};
      });
    });
}

void add_dropout_cases(KernelCases& cases) {
  const std::vector<ImageShape> shapes =
      cases.is_small ? std::vector<ImageShape>{{2, 5}, {1, 3, 2, 2}, {1, 3, 1, 3}}
                     : std::vector<ImageShape>{{37, 133}, {8, 13, 12, 12}, {8, 70, 9, 5}};
  for (const ImageShape& shape : shapes)
    for_each_storage([&]<typename T>(T) {
      cases.add(named<T>("Dropout"), [=](KernelArrays& arrays, std::mt19937& generator) {
        const T* src = arrays.input(random_images<T>(generator, shape));
        const StepNumbers* step = arrays.input(std::vector<StepNumbers>{
            {.step = 0x700000003ull, .first_position = (std::int64_t{1} << 32) - 1}});
        return Dropout<T>{.src = src,
                          .dst = arrays.output<T>(shape.stored_elements()),
                          .step = step,
                          .samples = shape.samples,
                          .pixels = shape.pixels(),
                          .channels = shape.padded(),
                          .used = shape.channels,
                          .key0 = 0x89abcdefu,
                          .key1 = 0x01234567u,
                          .threshold = 0x4ccccccdu,
                          .scale = 1 / 0.7f};
      });
    });
}

namespace {

struct Pool {
  PoolShape shape;
  [[nodiscard]] ImageShape src() const {
    return {shape.samples, shape.channels, shape.rows.size, shape.columns.size};
  }
  [[nodiscard]] ImageShape dst() const {
    return {shape.samples, shape.channels, shape.rows.positions, shape.columns.positions};
  }
};

Pool pool(const ImageShape& src, int kernel, int stride, int padding) {
  return {{.samples = src.samples,
           .channels = src.padded(),
           .rows = {src.height, (src.height + 2 * padding - kernel) / stride + 1, kernel, stride, padding},
           .columns = {src.width, (src.width + 2 * padding - kernel) / stride + 1, kernel, stride, padding},
           .count_padding = true}};
}

template <typename T>
void add_window_pools(KernelCases& cases, const Pool& pool) {
  for (const bool keeps_winner : {true, false})
    cases.add(named<T>("MaxPoolForward"), [=](KernelArrays& arrays, std::mt19937& generator) {
      const T* src = arrays.input(random_images<T>(generator, pool.src()));
      T* dst = arrays.output<T>(pool.dst().stored_elements());
      return MaxPoolForward<T>{
          pool.shape, src, dst,
          keeps_winner ? arrays.output<std::uint16_t>(pool.dst().stored_elements()) : nullptr};
    });
  cases.add(named<T>("MaxPoolBackward"), [=](KernelArrays& arrays, std::mt19937& generator) {
    std::uniform_int_distribution<int> draw(0, pool.shape.rows.kernel * pool.shape.columns.kernel - 1);
    std::vector<std::uint16_t> winners(pool.dst().stored_elements());
    for (auto& winner : winners) winner = static_cast<std::uint16_t>(draw(generator));
    const std::uint16_t* winner = arrays.input(winners);
    const T* d_dst = arrays.input(random_images<T>(generator, pool.dst()));
    return MaxPoolBackward<T>{pool.shape, winner, d_dst, arrays.output<T>(pool.src().stored_elements())};
  });
  cases.add(named<T>("AveragePoolForward"), [=](KernelArrays& arrays, std::mt19937& generator) {
    const T* src = arrays.input(random_images<T>(generator, pool.src()));
    return AveragePoolForward<T>{pool.shape, src, arrays.output<T>(pool.dst().stored_elements())};
  });
  cases.add(named<T>("AveragePoolBackward"), [=](KernelArrays& arrays, std::mt19937& generator) {
    const T* d_dst = arrays.input(random_images<T>(generator, pool.dst()));
    return AveragePoolBackward<T>{pool.shape, d_dst, arrays.output<T>(pool.src().stored_elements())};
  });
}

template <typename T>
void add_global_pools(KernelCases& cases, const ImageShape& src) {
  const ImageShape dst{src.samples, src.channels};
  cases.add(named<T>("GlobalAveragePoolForward"), [=](KernelArrays& arrays, std::mt19937& generator) {
    const T* from = arrays.input(random_images<T>(generator, src));
    return GlobalAveragePoolForward<T>{src.samples, src.padded(), src.pixels(), from,
                                       arrays.output<T>(dst.stored_elements())};
  });
  cases.add(named<T>("GlobalAveragePoolBackward"), [=](KernelArrays& arrays, std::mt19937& generator) {
    const T* d_dst = arrays.input(random_images<T>(generator, dst));
    return GlobalAveragePoolBackward<T>{src.samples, src.padded(), src.pixels(), d_dst,
                                        arrays.output<T>(src.stored_elements())};
  });
}

}  // namespace

void add_pool_cases(KernelCases& cases) {
  const std::vector<Pool> windows =
      cases.is_small ? std::vector{pool({1, 3, 3, 3}, 2, 1, 1)}
                     : std::vector{pool({4, 16, 14, 18}, 2, 2, 0), pool({5, 10, 21, 17}, 3, 2, 1),
                                   pool({2, 24, 9, 10}, 2, 3, 0), pool({3, 8, 8, 8}, 4, 2, 2)};
  const std::vector<ImageShape> planes = cases.is_small
                                             ? std::vector<ImageShape>{{2, 3, 3, 1}}
                                             : std::vector<ImageShape>{{17, 64, 7, 7}, {3, 10, 4, 4}};
  for_each_storage([&]<typename T>(T) {
    for (const Pool& window : windows) add_window_pools<T>(cases, window);
    for (const ImageShape& plane : planes) add_global_pools<T>(cases, plane);
  });
}

}  // namespace paceline::engine::cuda

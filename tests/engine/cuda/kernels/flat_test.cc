// Kernels between the host's or the flat fp32 arrays and the engine's storage: images, biases, weights; and
// those of base::Memory.

#include "engine/cuda/kernels/columns.h"
#include "engine/cuda/kernels/gather.h"
#include "engine/cuda/kernels/kernel.h"
#include "engine/cuda/kernels/kernel_runs.h"
#include "engine/cuda/kernels/weights.h"

namespace paceline::engine::cuda {
namespace {

template <typename T>
class CudaFlat : public ::testing::Test {
 protected:
  std::mt19937 generator_{17};
};
TYPED_TEST_SUITE(CudaFlat, Storages);

TYPED_TEST(CudaFlat, InputPadsChannelsAndSamples) {
  for (const int channels : {1, 3, 8, 11}) {
    const int pixels = 35, filled = 21, padded = padded_channels(channels);
    const auto images =
        floats(random_values<float>(this->generator_, static_cast<std::size_t>(filled * channels)));
    Stored<TypeParam> dst(static_cast<std::size_t>(pixels * padded));
    run(InputImages<TypeParam>{images.data(), dst.data(), pixels, filled, channels, padded}, {dst.output()},
        Blocks::any);
    for (int p = 0; p < pixels; ++p)
      for (int c = 0; c < padded; ++c) {
        TypeParam expected;
        store(p < filled && c < channels ? images[static_cast<std::size_t>(p * channels + c)] : 0.0f,
              expected);
        EXPECT_EQ(dst[static_cast<std::size_t>(p * padded + c)], static_cast<double>(load(expected)));
      }
  }
}

TYPED_TEST(CudaFlat, BiasIsAdded) {
  for (const ImageShape shape : {ImageShape{3, 10, 4, 4}, ImageShape{5, 72, 3, 3}, ImageShape{9, 130}}) {
    const auto src = random_values<TypeParam>(this->generator_, shape.elements());
    const auto bias = random_values<float>(this->generator_, static_cast<std::size_t>(shape.channels));
    const auto bias_f = floats(bias);
    for (const bool relu : {false, true}) {
      auto values = to_storage<TypeParam>(shape, src);
      run(BiasAdd<TypeParam>{Columns::for_rows(shape.rows(), 1, shape.padded()), values.data(), values.data(),
                             bias_f.data(), shape.channels, relu},
          {values.output()});
      std::vector<double> expected(src);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        expected[i] += bias[i / static_cast<std::size_t>(shape.pixels()) % bias.size()];
        if (relu && expected[i] < 0) expected[i] = 0;
      }
      expect_near<TypeParam>(from_storage(shape, values), expected);
    }
  }
}

TYPED_TEST(CudaFlat, BiasGradientSumsTheRowsOfEachSet) {
  for (const ImageShape shape : {ImageShape{4, 10, 4, 4}, ImageShape{6, 72, 9, 9}, ImageShape{20, 130}})
    for (const int sets : {1, 2})
      for (const bool relu : {false, true}) {
        const auto d_dst = random_values<TypeParam>(this->generator_, shape.elements());
        const auto dst = random_values<TypeParam>(this->generator_, shape.elements());
        auto stored = to_storage<TypeParam>(shape, d_dst), output_ = to_storage<TypeParam>(shape, dst);
        Stored<TypeParam> masked(stored.size());
        const Columns columns = Columns::for_sums(shape.rows() / sets, sets, shape.padded());
        std::vector<double> partial(static_cast<std::size_t>(sets * columns.row_blocks * shape.padded()),
                                    kNan);
        const auto channels = static_cast<std::size_t>(shape.channels), stride = channels + 3;
        std::vector<float> d_bias(stride * static_cast<std::size_t>(sets), std::nanf(""));
        run(BiasGradientSums<TypeParam>{columns, stored.data(), relu ? output_.data() : nullptr,
                                        relu ? masked.data() : nullptr, partial.data()},
            {output(partial), masked.output()});
        run(BiasGradient{{partial.data(), sets, columns.row_blocks, shape.padded()},
                         shape.channels,
                         d_bias.data(),
                         static_cast<std::int64_t>(stride)},
            {output(d_bias)});
        std::vector<double> expected(channels * static_cast<std::size_t>(sets)), g(d_dst);
        for (std::size_t i = 0; i < g.size(); ++i) {
          if (relu && !(dst[i] > 0)) g[i] = 0;
          const std::size_t c = i / static_cast<std::size_t>(shape.pixels()) % channels;
          expected[i / (g.size() / static_cast<std::size_t>(sets)) * channels + c] += g[i];
        }
        for (std::size_t set = 0; set < static_cast<std::size_t>(sets); ++set) {
          for (std::size_t c = 0; c < channels; ++c)
            EXPECT_NEAR(d_bias[set * stride + c], expected[set * channels + c], 1e-4);
          for (std::size_t c = channels; c < stride; ++c) EXPECT_TRUE(std::isnan(d_bias[set * stride + c]));
        }
        if (relu) {
          EXPECT_EQ(from_storage(shape, masked), g);
        }
      }
}

TYPED_TEST(CudaFlat, WeightsOfAllLayersArePacked) {
  const std::vector<WeightShape> shapes{
      {.outs = 5, .padded_outs = 8, .ins = 3, .padded_ins = 8, .taps = 9},
      {.outs = 64, .padded_outs = 64, .ins = 24, .padded_ins = 24, .taps = 9},
      {.outs = 10, .padded_outs = 16, .ins = 20, .padded_ins = 24, .taps = 16},
      {.outs = 8, .padded_outs = 8, .ins = 8, .padded_ins = 8, .taps = 1}};
  std::vector<PackedWeight<TypeParam>> layers;
  std::vector<Stored<TypeParam>> packed;
  std::int64_t offset = 16;
  int blocks = 0;
  for (const WeightShape& shape : shapes) {
    packed.emplace_back(static_cast<std::size_t>(shape.padded_elements()));
    layers.push_back({offset, packed.back().data(), shape, blocks});
    offset += (shape.elements() + 15) / 16 * 16;
    blocks += PackedWeight<TypeParam>::blocks_of(shape);
  }
  const auto weights = floats(random_values<float>(this->generator_, static_cast<std::size_t>(offset)));
  std::vector<Output> outputs;
  for (auto& one : packed) outputs.push_back(one.output());
  run(PackWeights<TypeParam>{weights.data(), layers.data(), static_cast<int>(layers.size()), blocks},
      outputs);
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const WeightShape& shape = shapes[l];
    std::size_t i = 0;
    for (int k = 0; k < shape.padded_outs; ++k)
      for (int t = 0; t < shape.taps; ++t)
        for (int c = 0; c < shape.padded_ins; ++c, ++i) {
          TypeParam expected;
          const bool inside = k < shape.outs && c < shape.ins;
          store(inside ? weights[static_cast<std::size_t>(layers[l].offset +
                                                          (std::int64_t{k} * shape.ins + c) * shape.taps + t)]
                       : 0.0f,
                expected);
          ASSERT_EQ(packed[l][i], static_cast<double>(load(expected))) << "layer " << l << " element " << i;
        }
    // And back: the gradient has the weights' order again.
    std::vector<float> gradient(static_cast<std::size_t>(shape.elements()) + 1, std::nanf(""));
    run(UnpackGradient<TypeParam>{packed[l].data(), gradient.data(), shape}, {output(gradient)}, Blocks::any);
    for (std::size_t e = 0; e + 1 < gradient.size(); ++e) {
      TypeParam expected;
      store(weights[static_cast<std::size_t>(layers[l].offset) + e], expected);
      ASSERT_EQ(gradient[e], load(expected));
    }
    EXPECT_TRUE(std::isnan(gradient.back()));
  }
}

TEST(CudaArray, FillsCopiesAndAdds) {
  std::mt19937 generator(19);
  for (const std::size_t count : {0u, 1u, 5u, 1023u, 5000u}) {
    const auto left = floats(random_values<float>(generator, count + 1));
    const auto right = floats(random_values<float>(generator, count + 1));
    std::vector<float> dst(count + 2, std::nanf(""));  // from the second float on: nothing is aligned
    const auto n = static_cast<std::int64_t>(count);
    const auto expect = [&](auto value) {
      EXPECT_TRUE(std::isnan(dst.front()) && std::isnan(dst.back()));
      for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(dst[i + 1], value(i));
    };
    run(ArrayFill{dst.data() + 1, n, 2.5f}, {output(dst)}, Blocks::any);
    expect([](std::size_t) { return 2.5f; });
    run(ArrayCopy{left.data(), dst.data() + 1, n}, {output(dst)}, Blocks::any);
    expect([&](std::size_t i) { return left[i]; });
    run(ArrayAdd{dst.data() + 1, right.data(), dst.data() + 1, n}, {output(dst)}, Blocks::any);
    expect([&](std::size_t i) { return left[i] + right[i]; });
  }
}

}  // namespace
}  // namespace paceline::engine::cuda

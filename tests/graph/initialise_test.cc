#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "graph/initialise.h"
#include "graph/zoo.h"

namespace paceline::graph {
namespace {

struct Moments {
  double mean = 0, deviation = 0, largest = 0;
};

struct Initialised {
  Graph graph;
  Layout layout;
  std::vector<float> weights;

  Initialised(const std::string& model, Shape input, std::uint64_t seed)
      : graph(make_model(model, input, 10, 0)),
        layout(flat_layout(graph)),
        weights(static_cast<std::size_t>(layout.elements), -7.0f) {
    initialise(graph, layout, seed, weights);
  }
  [[nodiscard]] std::vector<float> part(const std::string& name) const {
    const auto found = std::ranges::find(graph.parameters, name, &Parameter::name);
    const Slot& slot = layout.slots[static_cast<std::size_t>(
        layout.slot_of_parameter[static_cast<std::size_t>(found - graph.parameters.begin())])];
    return {weights.begin() + slot.offset, weights.begin() + slot.offset + slot.elements};
  }
  [[nodiscard]] Moments moments(const std::string& name) const {
    Moments result;
    const auto values = part(name);
    for (const float value : values) {
      result.mean += value / static_cast<double>(values.size());
      result.largest = std::max(result.largest, std::abs(static_cast<double>(value)));
    }
    for (const float value : values)
      result.deviation += (value - result.mean) * (value - result.mean) / static_cast<double>(values.size());
    result.deviation = std::sqrt(result.deviation);
    return result;
  }
};

TEST(Initialise, DrawsResnetConvolutionsNormallyByFanOut) {
  const Initialised model("resnet18-cifar", {3, 32, 32}, 1);
  const Moments moments = model.moments("layer2.0.conv1.weight");  // 73,728 draws
  const double expected = std::sqrt(2.0 / (128 * 9));
  EXPECT_NEAR(moments.mean, 0, 5 * expected / std::sqrt(73728.0));
  EXPECT_NEAR(moments.deviation, expected, 5 * expected / std::sqrt(2 * 73728.0));
  EXPECT_GT(moments.largest, 3.5 * expected);  // a normal has tails
}

/// One convolution 3 -> `channels` (or a dense layer behind one of 3 -> 3), started as asked.
std::vector<float> started(Init init, int channels, std::uint64_t seed = 1, Pair kernel = 3) {
  Builder model("one");
  const int conv =
      model.conv2d(model.input({3, 8, 8}), "conv",
                   {.channels = channels, .kernel = kernel, .padding = {kernel.height / 2, 1}, .init = init});
  model.loss(model.dense(conv, "fc", {.features = 10}), 0);
  const Graph graph = model.finish();
  const Layout layout = flat_layout(graph);
  std::vector<float> weights(static_cast<std::size_t>(layout.elements), -7.0f);
  initialise(graph, layout, seed, weights);
  const Slot& slot = layout.slots[static_cast<std::size_t>(layout.slot_of_parameter[0])];
  return {weights.begin() + slot.offset, weights.begin() + slot.offset + slot.elements};
}

TEST(Initialise, DiracPassesChannelsOnAndDrawsTheOtherFilters) {
  for (const int channels : {2, 3, 5}) {
    const auto usual = started(Init::usual, channels), dirac = started(Init::dirac, channels);
    for (int k = 0; k < channels; ++k)
      for (int c = 0; c < 3; ++c)
        for (int tap = 0; tap < 9; ++tap) {
          const auto at = static_cast<std::size_t>((k * 3 + c) * 9 + tap);
          EXPECT_EQ(dirac[at], k >= 3 ? usual[at] : k == c && tap == 4 ? 1.0f : 0.0f) << k << c << tap;
        }
  }
}

TEST(Initialise, DiracIsInAnUnevenKernelsMiddle) {
  const auto dirac = started(Init::dirac, 3, 1, {2, 5});  // as torch.nn.init.dirac_: row 1, column 2
  for (std::size_t i = 0; i < dirac.size(); ++i)
    EXPECT_EQ(dirac[i], i / 30 == i / 10 % 3 && i % 10 == 7 ? 1.0f : 0.0f) << i;
}

TEST(Initialise, ZeroIsZero) { EXPECT_EQ(started(Init::zero, 4), std::vector<float>(4 * 27, 0.0f)); }

TEST(Initialise, DrawsPlainLayersUniformlyByFanIn) {
  const Initialised model("mnist-cnn", {1, 28, 28}, 1);
  for (const auto& [name, fan_in] : {std::pair{"conv2.weight", 288.0},
                                     {"conv2.bias", 288.0},
                                     {"fc1.weight", 9216.0},
                                     {"fc1.bias", 9216.0},
                                     {"fc2.weight", 128.0}}) {
    const double bound = 1 / std::sqrt(fan_in);
    const auto count = static_cast<double>(model.part(name).size());
    const Moments moments = model.moments(name);
    EXPECT_LE(moments.largest, bound) << name;
    EXPECT_GT(moments.largest, 0.9 * bound) << name;
    EXPECT_NEAR(moments.mean, 0, 5 * bound / std::sqrt(3 * count)) << name;
  }
}

TEST(Initialise, StartsBatchNormAsTheIdentity) {
  const Initialised model("resnet8-cifar", {3, 32, 32}, 1);
  for (const float value : model.part("bn1.weight")) EXPECT_EQ(value, 1);
  for (const float value : model.part("bn1.running_var")) EXPECT_EQ(value, 1);
  for (const float value : model.part("bn1.bias")) EXPECT_EQ(value, 0);
  for (const float value : model.part("bn1.running_mean")) EXPECT_EQ(value, 0);
}

TEST(Initialise, IsAFunctionOfTheSeed) {
  const Initialised one("mnist-cnn", {1, 28, 28}, 1), again("mnist-cnn", {1, 28, 28}, 1),
      other("mnist-cnn", {1, 28, 28}, 2);
  EXPECT_EQ(one.weights, again.weights);
  EXPECT_NE(one.part("fc1.weight"), other.part("fc1.weight"));
  EXPECT_NE(one.part("conv1.bias"), one.part("conv1.weight"));
}

TEST(Initialise, LeavesThePaddingZero) {
  const Initialised model("mnist-cnn", {1, 28, 28}, 1);
  std::vector<float> weights = model.weights;
  for (const Slot& slot : model.layout.slots) std::fill_n(weights.begin() + slot.offset, slot.elements, 0.0f);
  EXPECT_EQ(weights, std::vector<float>(weights.size(), 0.0f));
}

TEST(ZeroLastGammas, LetsEveryBlockBeginAsTheIdentity) {
  for (const char* name : {"resnet18", "resnet18-cifar", "resnet8-cifar"}) {
    Graph graph = make_model(name, {3, 32, 32}, 10, 0);
    int blocks = 0;
    for (const Node& node : graph.nodes) blocks += node.as<Add>() != nullptr ? 1 : 0;
    EXPECT_EQ(zero_last_gammas(graph), blocks) << name;
    for (const Node& node : graph.nodes) {
      const auto* norm = node.as<BatchNorm>();
      if (norm == nullptr) continue;
      // torchvision's zero_init_residual: bn2 of each basic block, and no shortcut's.
      const bool ends_branch = node.name.ends_with(".bn2");
      EXPECT_EQ(norm->init, ends_branch ? Init::zero : Init::usual) << node.name;
    }
    const Layout layout = flat_layout(graph);
    std::vector<float> weights(static_cast<std::size_t>(layout.elements));
    initialise(graph, layout, 0, weights);
    for (const Slot& slot : layout.slots) {
      const Parameter& parameter = graph.parameters[static_cast<std::size_t>(slot.parameter)];
      if (parameter.role != Role::norm_weight) continue;
      const float expected = parameter.name.ends_with(".bn2.weight") ? 0 : 1;
      for (std::int64_t i = 0; i < slot.elements; ++i)
        ASSERT_EQ(weights[static_cast<std::size_t>(slot.offset + i)], expected) << parameter.name;
    }
  }
  Graph plain = make_model("mnist-cnn", {1, 28, 28}, 10, 0);
  EXPECT_EQ(zero_last_gammas(plain), 0);
}

}  // namespace

namespace {

TEST(Eigen, FindsThoseOfAMatrixKnownInClosedForm) {
  // The second difference of n points: 2 - 2 cos(k pi / (n + 1)), with sines as vectors.
  constexpr int n = 9;
  std::vector<double> matrix(n * n);
  for (int i = 0; i < n; ++i) {
    matrix[static_cast<std::size_t>(i * n + i)] = 2;
    if (i > 0)
      matrix[static_cast<std::size_t>(i * n + i - 1)] = matrix[static_cast<std::size_t>((i - 1) * n + i)] =
          -1;
  }
  const Eigen eigen = eigen_of_symmetric(matrix, n);
  for (int k = 0; k < n; ++k) {
    const double angle = (n - k) * M_PI / (n + 1);
    EXPECT_NEAR(eigen.values[static_cast<std::size_t>(k)], 2 - 2 * std::cos(angle), 1e-13);
    std::vector<double> want;
    for (int i = 0; i < n; ++i) want.push_back(std::sqrt(2.0 / (n + 1)) * std::sin((i + 1) * angle));
    double same = 0, length = 0;
    for (int i = 0; i < n; ++i) {
      const double got = eigen.vectors[static_cast<std::size_t>(k * n + i)];
      same += got * want[static_cast<std::size_t>(i)];
      length += got * got;
    }
    EXPECT_NEAR(std::abs(same), 1, 1e-13) << k;
    EXPECT_NEAR(length, 1, 1e-13);
  }
}

TEST(Eigen, TakesAMatrixThatIsDiagonalAlready) {
  const Eigen eigen = eigen_of_symmetric({1, 0, 0, 3}, 2);
  EXPECT_EQ(eigen.values, (std::vector<double>{3, 1}));
  EXPECT_EQ(eigen.vectors, (std::vector<double>{0, 1, 1, 0}));
  EXPECT_EQ(eigen_of_symmetric({0}, 1).values, std::vector<double>{0});
}

Graph whitened(int channels, int kernel, Shape shape = {3, 7, 6}) {
  Builder model("whitened");
  const int conv =
      model.conv2d(model.input(shape), "white",
                   {.channels = channels, .kernel = kernel, .init = Init::whiten, .rates = {0, 0}});
  model.loss(model.dense(conv, "fc", {.features = 4}), 0);
  return model.finish();
}

/// [count][H][W][C], each pixel like the one before it: as in photographs.
std::vector<float> smooth_images(const Shape& shape, int count) {
  base::Rng rng(5, base::Purpose::test);
  std::vector<float> images(static_cast<std::size_t>(count * shape.elements()));
  float before = 0;
  for (float& value : images) value = before = 0.9f * before + 0.4f * rng.normal();
  return images;
}

// What the layer makes of the very images that it was made from: variance l / (l + epsilon) in every channel,
// no correlation between any two of one sign, and the other half is the first with the sign changed.
TEST(Whiten, MakesPatchesUncorrelated) {
  const Graph graph = whitened(24, 2);
  const Layout layout = flat_layout(graph);
  const Shape shape = graph.input_shape();
  const auto images = smooth_images(shape, 50);
  std::vector<float> weights(static_cast<std::size_t>(layout.elements));
  initialise(graph, layout, 1, weights);
  const auto before = weights;
  whiten(graph, layout, images, weights);
  const float* weight =
      weights.data() + layout.slots[static_cast<std::size_t>(layout.slot_of_parameter[0])].offset;

  std::vector<double> products(144);
  int patches = 0;
  for (int image = 0; image < 50; ++image)
    for (int y = 0; y + 1 < shape.height; ++y)
      for (int x = 0; x + 1 < shape.width; ++x, ++patches) {
        std::vector<double> out(24);
        for (int k = 0; k < 24; ++k)
          for (int c = 0; c < 3; ++c)
            for (int r = 0; r < 2; ++r)
              for (int s = 0; s < 2; ++s)
                out[static_cast<std::size_t>(k)] +=
                    static_cast<double>(weight[((k * 3 + c) * 2 + r) * 2 + s]) *
                    static_cast<double>(images[static_cast<std::size_t>(
                        image * shape.elements() + ((y + r) * shape.width + x + s) * 3 + c)]);
        for (std::size_t k = 0; k < 12; ++k) {
          EXPECT_EQ(out[k + 12], -out[k]);
          for (std::size_t j = 0; j < 12; ++j) products[k * 12 + j] += out[k] * out[j];
        }
      }
  for (std::size_t k = 0; k < 12; ++k)
    for (std::size_t j = 0; j < 12; ++j)
      EXPECT_NEAR(products[k * 12 + j] / patches, k == j ? 1 : 0, k == j ? 0.02 : 1e-5) << k << " " << j;
  // Nothing else was touched.
  const Slot& slot = layout.slots[static_cast<std::size_t>(layout.slot_of_parameter[0])];
  for (std::int64_t i = 0; i < layout.elements; ++i) {
    const bool own = i >= slot.offset && i < slot.offset + slot.elements;
    EXPECT_TRUE(own || weights[static_cast<std::size_t>(i)] == before[static_cast<std::size_t>(i)]) << i;
  }
}

TEST(Whiten, KeepsTheLargestDirectionsWhereThereIsNoRoomForAll) {
  std::vector<std::vector<float>> first;
  for (const int channels : {24, 8}) {
    const Graph graph = whitened(channels, 2);
    const Layout layout = flat_layout(graph);
    std::vector<float> weights(static_cast<std::size_t>(layout.elements));
    whiten(graph, layout, smooth_images(graph.input_shape(), 20), weights);
    const auto at =
        weights.begin() + layout.slots[static_cast<std::size_t>(layout.slot_of_parameter[0])].offset;
    first.emplace_back(at, at + 4 * 12);
  }
  EXPECT_EQ(first[0], first[1]);
}

TEST(Whiten, StaysFiniteOnImagesOfOneColour) {
  const Graph graph = whitened(24, 2);
  const Layout layout = flat_layout(graph);
  std::vector<float> weights(static_cast<std::size_t>(layout.elements));
  whiten(graph, layout,
         std::vector<float>(static_cast<std::size_t>(3 * graph.input_shape().elements()), 0.5f), weights);
  EXPECT_TRUE(std::all_of(weights.begin(), weights.end(), [](float w) { return std::isfinite(w); }));
}

TEST(Whiten, IsRefusedWhereItMakesNoSense) {
  EXPECT_THROW((void)whitened(25, 2), base::Error);  // odd
  EXPECT_THROW((void)whitened(26, 2), base::Error);  // more than both signs of every direction
  Builder model("deep");
  const int conv = model.conv2d(model.input({3, 8, 8}), "first", {.channels = 4});
  EXPECT_THROW(model.conv2d(conv, "second", {.channels = 4, .init = Init::whiten}), base::Error);
}

}  // namespace
}  // namespace paceline::graph

#include "graph/whiten.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/rng.h"
#include "graph/builder.h"
#include "graph/initialise.h"

namespace paceline::graph {
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

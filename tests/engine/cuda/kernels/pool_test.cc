#include "engine/cuda/kernels/pool.h"

#include "engine/cuda/kernels/kernel_runs.h"
#include "engine/reference/ops.h"

namespace paceline::engine::cuda {
namespace {

struct PoolCase {
  ImageShape src;
  int kernel, stride, padding;
  bool rounds_up = false, counts_padding = true;
  [[nodiscard]] ImageShape dst() const {
    ImageShape dst = src;
    const int more = rounds_up ? stride - 1 : 0;  // no case rounds up to a window beyond the image
    dst.height = (src.height + 2 * padding - kernel + more) / stride + 1;
    dst.width = (src.width + 2 * padding - kernel + more) / stride + 1;
    return dst;
  }
  [[nodiscard]] PoolShape shape() const {
    return {.samples = src.samples,
            .channels = src.padded(),
            .rows = {src.height, dst().height, kernel, stride, padding},
            .columns = {src.width, dst().width, kernel, stride, padding},
            .count_padding = counts_padding};
  }
  [[nodiscard]] reference::OpShapes reference() const {
    return {.batch = src.samples, .src = src.shape(), .dst = dst().shape()};
  }
};

/// Windows that overlap, that leave gaps and rests, padding, odd sizes.
std::vector<PoolCase> cases() {
  return {{{2, 3, 8, 8}, 2, 2, 0},       {{3, 16, 7, 9}, 2, 2, 0},
          {{2, 10, 11, 7}, 3, 2, 1},     {{1, 24, 6, 5}, 3, 1, 1},
          {{2, 8, 9, 10}, 2, 3, 0},      {{1, 1, 1, 1}, 1, 1, 0},
          {{2, 9, 5, 5}, 5, 5, 0},       {{1, 8, 4, 4}, 4, 2, 2},
          {{2, 9, 8, 6}, 3, 2, 0, true}, {{2, 9, 8, 6}, 3, 2, 1, true, false}};
}

template <typename T>
class CudaPool : public ::testing::Test {
 protected:
  /// Few different values: many ties.
  std::vector<double> with_ties(std::size_t count) {
    std::uniform_int_distribution<int> draw(-2, 2);
    std::vector<double> values(count);
    for (double& value : values) value = draw(generator_);
    return values;
  }
  std::mt19937 generator_{11};
};
TYPED_TEST_SUITE(CudaPool, Storages);

TYPED_TEST(CudaPool, MaxPoolHasTheReferencesWinners) {
  for (const PoolCase& pool : cases()) {
    std::vector<double> src = this->with_ties(pool.src.elements());
    src[0] = kNan;
    src.back() = kNan;
    const graph::MaxPool op{.kernel = pool.kernel, .stride = pool.stride, .padding = pool.padding};
    std::vector<double> expected(pool.dst().elements());
    std::vector<std::int32_t> winner(expected.size());
    reference::max_pool_forward(pool.reference(), op, src.data(), expected.data(), winner.data());

    auto stored = to_storage<TypeParam>(pool.src, src);
    Stored<TypeParam> dst(pool.dst().stored_elements());
    std::vector<std::uint16_t> taps(dst.size(), 0xffff);
    run(MaxPoolForward<TypeParam>{pool.shape(), stored.data(), dst.data(), taps.data()},
        {dst.output(), output(taps)}, Blocks::any);
    const std::vector<double> got = from_storage(pool.dst(), dst);
    int i = 0;
    for (int n = 0; n < pool.src.samples; ++n)
      for (int c = 0; c < pool.src.channels; ++c)
        for (int p = 0; p < pool.dst().height; ++p)
          for (int q = 0; q < pool.dst().width; ++q, ++i) {
            const auto at = static_cast<std::size_t>(i);
            EXPECT_TRUE(got[at] == expected[at] || (std::isnan(got[at]) && std::isnan(expected[at])));
            const int tap = taps[pool.dst().stored_at(n, c, p, q)];
            const int y = p * pool.stride - pool.padding + tap / pool.kernel;
            const int x = q * pool.stride - pool.padding + tap % pool.kernel;
            EXPECT_EQ(y * pool.src.width + x, winner[at]) << "window " << i;
          }
  }
}

TYPED_TEST(CudaPool, MaxPoolBackwardIsTheReference) {
  for (const PoolCase& pool : cases()) {
    const std::vector<double> src = this->with_ties(pool.src.elements());
    const std::vector<double> d_dst = random_values<TypeParam>(this->generator_, pool.dst().elements());
    const graph::MaxPool op{.kernel = pool.kernel, .stride = pool.stride, .padding = pool.padding};
    std::vector<double> dst(pool.dst().elements()), expected(pool.src.elements(), 0.0);
    std::vector<std::int32_t> winner(dst.size());
    reference::max_pool_forward(pool.reference(), op, src.data(), dst.data(), winner.data());
    reference::max_pool_backward(pool.reference(), winner.data(), d_dst.data(), expected.data());

    auto stored = to_storage<TypeParam>(pool.src, src);
    Stored<TypeParam> stored_dst(pool.dst().stored_elements()), d_src(pool.src.stored_elements());
    std::vector<std::uint16_t> taps(stored_dst.size(), 0xffff);
    run(MaxPoolForward<TypeParam>{pool.shape(), stored.data(), stored_dst.data(), taps.data()},
        {stored_dst.output(), output(taps)});
    auto gradient = to_storage<TypeParam>(pool.dst(), d_dst);
    run(MaxPoolBackward<TypeParam>{pool.shape(), taps.data(), gradient.data(), d_src.data()},
        {d_src.output()}, Blocks::any);
    expect_near<TypeParam>(from_storage(pool.src, d_src), expected);
  }
}

TYPED_TEST(CudaPool, AveragePoolIsTheReference) {
  for (const PoolCase& pool : cases()) {
    const graph::AveragePool op{.kernel = pool.kernel,
                                .stride = pool.stride,
                                .padding = pool.padding,
                                .ceil = pool.rounds_up,
                                .count_padding = pool.counts_padding};
    const std::vector<double> src = random_values<TypeParam>(this->generator_, pool.src.elements());
    std::vector<double> expected(pool.dst().elements());
    reference::average_pool_forward(pool.reference(), op, src.data(), expected.data());
    auto stored = to_storage<TypeParam>(pool.src, src);
    Stored<TypeParam> dst(pool.dst().stored_elements());
    run(AveragePoolForward<TypeParam>{pool.shape(), stored.data(), dst.data()}, {dst.output()}, Blocks::any);
    expect_near<TypeParam>(from_storage(pool.dst(), dst), expected);

    const std::vector<double> d_dst = random_values<TypeParam>(this->generator_, expected.size());
    std::vector<double> d_expected(src.size(), 0.0);
    reference::average_pool_backward(pool.reference(), op, d_dst.data(), d_expected.data());
    auto gradient = to_storage<TypeParam>(pool.dst(), d_dst);
    Stored<TypeParam> d_src(pool.src.stored_elements());
    run(AveragePoolBackward<TypeParam>{pool.shape(), gradient.data(), d_src.data()}, {d_src.output()},
        Blocks::any);
    expect_near<TypeParam>(from_storage(pool.src, d_src), d_expected);
  }
}

TYPED_TEST(CudaPool, GlobalAveragePoolIsTheReference) {
  for (const ImageShape src : {ImageShape{3, 10, 4, 4}, ImageShape{17, 64, 7, 7}, ImageShape{1, 1, 1, 1}}) {
    const ImageShape dst{.samples = src.samples, .channels = src.channels};
    const reference::OpShapes shapes{.batch = src.samples, .src = src.shape(), .dst = dst.shape()};
    const std::vector<double> values = random_values<TypeParam>(this->generator_, src.elements());
    std::vector<double> expected(dst.elements());
    reference::global_average_pool_forward(shapes, values.data(), expected.data());
    auto stored = to_storage<TypeParam>(src, values);
    Stored<TypeParam> stored_dst(dst.stored_elements());
    run(GlobalAveragePoolForward<TypeParam>{src.samples, src.padded(), src.pixels(), stored.data(),
                                            stored_dst.data()},
        {stored_dst.output()});
    expect_near<TypeParam>(from_storage(dst, stored_dst), expected);

    const std::vector<double> d_dst = random_values<TypeParam>(this->generator_, expected.size());
    std::vector<double> d_expected(values.size(), 0.0);
    reference::global_average_pool_backward(shapes, d_dst.data(), d_expected.data());
    auto gradient = to_storage<TypeParam>(dst, d_dst);
    Stored<TypeParam> d_src(src.stored_elements());
    run(GlobalAveragePoolBackward<TypeParam>{src.samples, src.padded(), src.pixels(), gradient.data(),
                                             d_src.data()},
        {d_src.output()}, Blocks::any);
    expect_near<TypeParam>(from_storage(src, d_src), d_expected);
  }
}

}  // namespace
}  // namespace paceline::engine::cuda

#include "engine/cuda/kernels/elementwise.h"

#include <bit>
#include <cmath>
#include <limits>

#include "engine/cuda/kernels/kernel_runs.h"
#include "engine/reference/ops.h"

namespace paceline::engine::cuda {
namespace {

template <typename T>
class CudaElementwise : public ::testing::Test {
 protected:
  static constexpr std::size_t kCount = 8 * 301;
  /// Two inputs; the first has zeros of both signs, NaN and infinity.
  CudaElementwise()
      : first_(random_values<T>(generator_, kCount)), second_(random_values<T>(generator_, kCount)) {
    first_[3] = 0;
    first_[4] = -0.0;
    first_[5] = std::numeric_limits<double>::infinity();
    first_[11] = -6.5;  // GELU's far ends
    first_[12] = 6.5;
  }
  [[nodiscard]] reference::OpShapes shapes() const {
    const graph::Shape shape{.channels = static_cast<int>(kCount)};
    return {.batch = 1, .src = shape, .dst = shape};
  }
  template <typename Kernel>
  std::vector<double> map1(bool in_place = false) {
    Stored<T> src(first_), dst(in_place ? Stored<T>(first_) : Stored<T>(kCount));
    run(Kernel{in_place ? dst.data() : src.data(), dst.data(), kCount / 8}, {dst.output()}, Blocks::any);
    return values(dst);
  }
  template <typename Kernel>
  std::vector<double> map2(bool in_place = false) {
    Stored<T> first(first_), second(second_), dst(in_place ? Stored<T>(first_) : Stored<T>(kCount));
    run(Kernel{in_place ? dst.data() : first.data(), second.data(), dst.data(), kCount / 8}, {dst.output()},
        Blocks::any);
    return values(dst);
  }
  static std::vector<double> values(const Stored<T>& stored) {
    std::vector<double> result(stored.size());
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = stored[i];
    return result;
  }
  std::mt19937 generator_{7};
  std::vector<double> first_, second_;
};
TYPED_TEST_SUITE(CudaElementwise, Storages);

TYPED_TEST(CudaElementwise, ReluKeepsNan) {
  this->first_[0] = kNan;
  EXPECT_TRUE(std::isnan(this->template map1<Relu<TypeParam>>()[0]));
  EXPECT_TRUE(std::isnan(this->template map2<AddRelu<TypeParam>>()[0]));
}

// At the kinks, too: 0, 6 and 3.
#define PACELINE_TEST(Op, name)                                                                           \
  TYPED_TEST(CudaElementwise, Op##IsTheReference) {                                                       \
    this->first_[5] = 1;                                                                                  \
    for (const double kink : {-3.0, 3.0, 6.0}) this->first_[static_cast<std::size_t>(20 + kink)] = kink;  \
    std::vector<double> expected(this->kCount), d_src(this->kCount, 0.0);                                 \
    reference::elementwise_forward<graph::Op>(this->shapes(), this->first_.data(), expected.data());      \
    expect_near<TypeParam>(this->template map1<Op<TypeParam>>(), expected);                               \
    expect_near<TypeParam>(this->template map1<Op<TypeParam>>(true), expected);                           \
    reference::elementwise_backward<graph::Op>(this->shapes(), this->first_.data(), this->second_.data(), \
                                               d_src.data());                                             \
    expect_near<TypeParam>(this->template map2<Op##Backward<TypeParam>>(), d_src);                        \
  }
PACELINE_ELEMENTWISE_OPS(PACELINE_TEST)
#undef PACELINE_TEST

TYPED_TEST(CudaElementwise, AddIsTheReference) {
  std::vector<double> expected(this->kCount);
  this->first_[5] = 1;
  reference::add_forward(this->shapes(), this->first_.data(), this->second_.data(), expected.data());
  expect_near<TypeParam>(this->template map2<Add<TypeParam>>(), expected);
  expect_near<TypeParam>(this->template map2<Add<TypeParam>>(true), expected);
  for (double& value : expected) value = value < 0 ? 0 : value;
  expect_near<TypeParam>(this->template map2<AddRelu<TypeParam>>(), expected);
}

/// Rounding to bf16 is to nearest even, as base::to_bf16 has it; a sum in fp32 is rounded once.
TEST(CudaStorage, RoundsToNearestEven) {
  const auto rounded = [](float value) {
    Bf16 result;
    store(value, result);
    return load(result);
  };
  EXPECT_EQ(rounded(1 + 0x1p-8f), 1.0f);
  EXPECT_EQ(rounded(1 + 3 * 0x1p-8f), 1 + 4 * 0x1p-8f);
  EXPECT_EQ(rounded(1 + 0x1p-8f + 0x1p-20f), 1 + 0x1p-7f);
  EXPECT_TRUE(std::isnan(rounded(std::nanf(""))));
  EXPECT_TRUE(std::isinf(rounded(std::numeric_limits<float>::max())));
}

/// The compiler's own conversions are the witness: of all fp16 numbers, of numbers between two of them, and
/// of random bits.
TEST(CudaStorage, ConvertsFp16LikeTheCompiler) {
  const auto as_half = [](std::uint16_t bits) { return std::bit_cast<_Float16>(bits); };
  const auto expect_stored = [&](float value) {
    Half stored;
    store(value, stored);
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(load(stored)));
    else
      EXPECT_EQ(stored.bits, std::bit_cast<std::uint16_t>(static_cast<_Float16>(value))) << value;
  };
  for (int bits = 0; bits < 0x10000; ++bits) {
    const Half half{static_cast<std::uint16_t>(bits)};
    const auto expected = static_cast<float>(as_half(half.bits));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(load(half))) << bits;
      continue;
    }
    ASSERT_EQ(std::bit_cast<std::uint32_t>(load(half)), std::bit_cast<std::uint32_t>(expected)) << bits;
    const auto next = load(Half{static_cast<std::uint16_t>(bits + 1)});
    const float middle = std::isfinite(next) ? expected + (next - expected) / 2 : expected;
    for (const float value : {expected, middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e9f)})
      expect_stored(value);
  }
  std::mt19937 generator(5);
  for (int i = 0; i < 100'000; ++i)
    expect_stored(std::bit_cast<float>(static_cast<std::uint32_t>(generator())));
}

template <typename T>
void expect_vectors_are_their_elements() {
  std::mt19937 generator(3);
  const auto values = random_values<float>(generator, 8);
  std::vector<T> one(8), all(8);
  Float8 vector;
  for (std::size_t i = 0; i < 8; ++i) {
    vector.value[i] = static_cast<float>(values[i]);
    store(vector.value[i], one[i]);
  }
  store8(vector, all.data());
  const Float8 back = load8(one.data());
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(all[i].bits, one[i].bits);
    EXPECT_EQ(back.value[i], load(one[i]));
  }
}

/// Eight at once are the same bits as one by one.
TEST(CudaStorage, VectorsAreTheirElements) {
  expect_vectors_are_their_elements<Bf16>();
  expect_vectors_are_their_elements<Half>();
}

}  // namespace
}  // namespace paceline::engine::cuda

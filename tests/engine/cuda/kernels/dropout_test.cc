#include "engine/cuda/kernels/elementwise.h"

#include "engine/cuda/kernels/kernel_runs.h"
#include "engine/dropout_mask.h"

namespace paceline::engine::cuda {
namespace {

template <typename T>
class CudaDropout : public ::testing::Test {};
TYPED_TEST_SUITE(CudaDropout, Storages);

/// Element by element what engine/dropout_mask.h says: features alone, planes whose pixels come in fours and
/// planes whose pixels do not; steps and positions beyond 32 bits.
TYPED_TEST(CudaDropout, KeepsWhatTheMaskKeeps) {
  constexpr std::uint64_t kSeed = 0x123456789abcdefull;
  constexpr double kProbability = 0.3;
  std::mt19937 generator(5);
  for (const ImageShape shape :
       {ImageShape{5, 37}, ImageShape{3, 128}, ImageShape{2, 13, 4, 6}, ImageShape{3, 8, 2, 2},
        ImageShape{2, 20, 3, 5}, ImageShape{1, 3, 1, 3}, ImageShape{2, 5, 2, 3}})
    for (const std::int64_t position : {std::int64_t{0}, std::int64_t{70}, (std::int64_t{1} << 32) - 1}) {
      const int op = 9;
      const StepNumbers step{.gradient_scale = kNan, .step = 0x700000003ull, .first_position = position};
      const std::vector<double> src = random_values<TypeParam>(generator, shape.elements());
      auto stored = to_storage<TypeParam>(shape, src);
      Stored<TypeParam> dst(stored.size());
      const DropoutMask any(kSeed, 0, 0, op, kProbability);
      const auto scale = static_cast<float>(1 / (1 - kProbability));
      Dropout<TypeParam> dropout{.src = stored.data(),
                                 .dst = dst.data(),
                                 .step = &step,
                                 .samples = shape.samples,
                                 .pixels = shape.pixels(),
                                 .channels = shape.padded(),
                                 .used = shape.channels,
                                 .key0 = any.key()[0],
                                 .key1 = any.key()[1],
                                 .threshold = any.threshold(),
                                 .scale = scale};
      run(dropout, {dst.output()}, Blocks::any);

      std::vector<double> expected(src.size());
      const auto elements = static_cast<std::int64_t>(src.size()) / shape.samples;
      for (int n = 0; n < shape.samples; ++n)
        DropoutMask(kSeed, step.step, position + n, op, kProbability)
            .for_each(elements, [&](std::int64_t i, bool kept) {
              const auto at = static_cast<std::size_t>(n * elements + i);
              TypeParam rounded;
              store(kept ? static_cast<float>(src[at]) * scale : 0.0f, rounded);
              expected[at] = static_cast<double>(load(rounded));
            });
      EXPECT_EQ(from_storage(shape, dst), expected);
      // In place, as backward may do it.
      dropout.src = dropout.dst = stored.data();
      run(dropout, {stored.output()}, Blocks::any);
      EXPECT_EQ(from_storage(shape, stored), expected);
    }
}

}  // namespace
}  // namespace paceline::engine::cuda

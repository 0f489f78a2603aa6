// Winograd's transforms of images in bf16: those of images in float with the same numbers, rounded where they
// are stored.

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "engine/cpu/conv/onednn.h"
#include "engine/cpu/conv/winograd_runs.h"
#include "engine/cpu/engine.h"
#include "engine/cpu/kernels/transpose/transpose.h"
#include "graph/zoo.h"

namespace paceline::engine::cpu::winograd {
namespace {

using Halves = std::vector<std::uint16_t>;

Halves halves_of(std::span<const float> values) {
  Halves halves;
  for (const float value : values) halves.push_back(base::to_bf16(value).bits);
  return halves;
}
Values floats_of(const Halves& halves) {
  Values values;
  for (const std::uint16_t bits : halves) values.push_back(base::to_float({bits}));
  return values;
}

TEST(WinogradInBf16, ReadsWhatFloatsOfTheSameNumbersGive) {
  for_tables([](const WinogradKernels& table) {
    const ImageView image{7, 13, 48};
    const Values values = rounded_to_bf16(random_values(7 * 13 * 48, 1));
    const Halves halves = halves_of(values);
    const std::pair<const Transforms*, const Transforms*> strides[] = {
        {&table.f32.stride1, &table.bf16.stride1}, {&table.f32.stride2, &table.bf16.stride2}};
    for (const auto& [f32, bf16] : strides) {
      const auto positions = static_cast<std::size_t>(f32->positions * f32->positions);
      for (const auto& [y, x] : {std::pair{-1, -1}, {0, 1}, {3, 7}}) {
        Values want(positions * 48, kNothing), got = want;
        for (const auto side : {&Transforms::forward, &Transforms::backward}) {
          (f32->*side).transform_input(values.data(), image, y, x, want.data(), 48);
          (bf16->*side).transform_input(halves.data(), image, y, x, got.data(), 48);
          EXPECT_EQ(got, want);
        }
        const int row = std::max(y, 0), column = std::max(x, 0);
        f32->transform_gradient(values.data(), image, 16, 32, row, column, want.data(), 32, nullptr);
        bf16->transform_gradient(halves.data(), image, 16, 32, row, column, got.data(), 32, nullptr);
        EXPECT_EQ(got, want);
      }
    }
  });
}

TEST(WinogradInBf16, WritesWhatFloatsRoundTo) {
  for_sides([](const Sides& sides) {
    for (const Output& o : outputs()) {
      const Values plain = o.plain(sides.f32);
      Halves got = halves_of(o.untouched());
      sides.bf16.transform_output(o.m.data(), o.stride, nullptr, got.data(), o.image, Output::kSample, o.y,
                                  o.x, nullptr);
      EXPECT_EQ(got, halves_of(plain));
    }
  });
}

/// The first pixel that backward writes with stride 2 is the product at one position alone.
TEST(WinogradInBf16, RoundsToTheNearestEvenAndKeepsWhatIsNoNumber) {
  constexpr int kPosition = 5 * 9 + 5;
  const float infinity = std::numeric_limits<float>::infinity();
  const Values hard = {0.0F,
                       -0.0F,
                       1 + 0x1p-8F,  // half way, down to even
                       1 + 0x3p-8F,  // half way, up to even
                       1 + 0x1.01p-8F,
                       -1 - 0x1p-8F,
                       0x1.ffp127F,  // rounds to infinity
                       std::numeric_limits<float>::max(),
                       infinity,
                       -infinity,
                       std::numeric_limits<float>::denorm_min(),
                       0x1p-130F,  // a denormal that bf16 has
                       -0x1.01p-126F,
                       std::numeric_limits<float>::quiet_NaN(),
                       std::bit_cast<float>(0xffffffffu),  // NaN that adding would carry over to 0
                       std::bit_cast<float>(0x7fff8000u)};
  for_tables([&](const WinogradKernels& table) {
    Values m(std::size_t{kMostPositions} * kFilters);
    std::ranges::copy(hard, m.begin() + kPosition * kFilters);
    const ImageView pixel{1, 1, kFilters};
    Halves got(kFilters);
    table.bf16.stride2.backward.transform_output(m.data(), kFilters, nullptr, got.data(), pixel, 0, 0, 0,
                                                 nullptr);
    EXPECT_EQ(got, halves_of(hard));
  });
}

TEST(WinogradInBf16, MomentsAreThoseOfWhatIsWritten) {
  for_sides([](const Sides& sides) {
    for (const Output& o : outputs()) {
      const Values plain = rounded_to_bf16(o.plain(sides.f32));
      Halves out = halves_of(o.untouched());
      Values shift = o.shift;
      Sums sums(o.image.channels);
      const Epilogue epilogue{
          .what = Epilogue::Sums::moments, .sums = sums.got.data(), .shift = shift.data()};
      sides.bf16.transform_output(o.m.data(), o.stride, nullptr, out.data(), o.image, Output::kSample, o.y,
                                  o.x, &epilogue);
      EXPECT_EQ(floats_of(out), plain);
      o.for_pixels(sides.f32, [&](std::size_t at, std::size_t c) {
        const double d = static_cast<double>(plain[at]) - static_cast<double>(o.shift[c]);
        sums.add(c, d);
        sums.add(static_cast<std::size_t>(o.image.channels) + c, d * d);
      });
      sums.compare();
    }
  });
}

TEST(WinogradInBf16, GradientsPassTheMaskOfStoredValuesAndAreSummed) {
  for_sides([](const Sides& sides) {
    for (const Output& o : outputs())
      for (const Mask mask : {Mask::none, Mask::from_src, Mask::from_dst})
        for (const bool second : {false, true}) {
          const Values plain = o.plain(sides.f32), x = rounded_to_bf16(o.src), y = rounded_to_bf16(o.dst),
                       first = rounded_to_bf16(o.first);
          const Halves src = halves_of(x), dst = halves_of(y), term = halves_of(first);
          Halves masked = halves_of(o.untouched()), nothing = masked;
          Sums sums(o.image.channels);
          Epilogue epilogue{.what = Epilogue::Sums::gradient, .sums = sums.got.data()};
          epilogue.gradient.src = src.data();
          epilogue.gradient.dst = dst.data();
          epilogue.gradient.d_dst = term.data();
          epilogue.gradient.d_dst2 = second ? nothing.data() : nullptr;
          epilogue.gradient.d_masked = masked.data();
          epilogue.gradient.mask = mask;
          epilogue.gradient.params.mean = o.mean.data();
          epilogue.gradient.params.scale = o.scale.data();
          epilogue.gradient.params.bias = o.bias.data();
          sides.bf16.transform_output(o.m.data(), o.stride, nullptr, nothing.data(), o.image, Output::kSample,
                                      o.y, o.x, &epilogue);
          EXPECT_EQ(nothing, halves_of(o.untouched())) << "dst is not written";
          Values want = o.untouched();
          o.for_pixels(sides.f32, [&](std::size_t at, std::size_t c) {
            const float centred = x[at] - o.mean[c];
            const volatile float scaled = centred * o.scale[c];  // rounded, as the forward pass did
            const float passes = mask == Mask::from_src   ? scaled + o.bias[c]
                                 : mask == Mask::from_dst ? y[at]
                                                          : 1;
            const float d = plain[at] + (second ? first[at] : 0);
            want[at] = passes <= 0 ? 0 : base::to_float(base::to_bf16(d));
            sums.add(c, static_cast<double>(want[at]));
            sums.add(static_cast<std::size_t>(o.image.channels) + c,
                     static_cast<double>(want[at]) * static_cast<double>(centred));
          });
          EXPECT_EQ(floats_of(masked), want);
          sums.compare();
        }
  });
}

TEST(WinogradInBf16, FiltersAreTransformsOfRoundedTaps) {
  for_tables([](const WinogradKernels& table) {
    const Values taps = random_values(9 * kFilters, 1), coarse = rounded_to_bf16(taps);
    for (const auto stride : {&Strides::stride1, &Strides::stride2})
      for (const bool rotated : {false, true}) {
        base::Buffer want(kMatrices * kFilters * sizeof(float)), got(want.bytes());
        const auto transform = (table.bf16.*stride).transform_filters;
        transform(coarse.data(), 9, rotated, false, want.as<float>().data(), kFilters);
        transform(taps.data(), 9, rotated, true, got.as<float>().data(), kFilters);
        end_streams();
        EXPECT_TRUE(std::ranges::equal(got.as<float>(), want.as<float>()));
      }
  });
}

TEST(WinogradInBf16, IsTakenForStoredValuesWhereNothingElseMultipliesThem) {
  if (kernels_here().empty()) GTEST_SKIP() << "Winograd needs AVX2, which this processor does not have";
  if (bf16_products_here() == Bf16Products::in_hardware)
    GTEST_SKIP() << "this processor has bf16 units, which multiply stored values";
  graph::Builder model("two");
  int value = model.relu(model.conv2d(model.input({32, 12, 12}), "wide", {.channels = 32, .padding = 1}));
  value = model.conv2d(value, "pointwise", {.channels = 32, .kernel = 1});
  model.loss(model.dense(model.global_average_pool(value), "fc", {.features = 3}), 0);
  const auto graph = model.finish();
  int wide = 0, pointwise = 0;
  for (const auto& kernel : compile(graph, {.batch = 8, .precision = Precision::bf16}, {})->kernels()) {
    const bool copied = kernel.reason.find("by blocks of 8 samples") != std::string::npos;
    if (kernel.op.starts_with("wide")) {
      ++wide;
      EXPECT_TRUE(kernel.implementation.starts_with("own Winograd")) << kernel.op << kernel.implementation;
      EXPECT_FALSE(copied) << kernel.op;
    } else if (kernel.op.starts_with("pointwise")) {
      ++pointwise;
      EXPECT_TRUE(copied) << kernel.op;
    }
  }
  EXPECT_EQ(wide, 2);  // no gradient of the input is wanted
  EXPECT_EQ(pointwise, 3);
}

}  // namespace
}  // namespace paceline::engine::cpu::winograd

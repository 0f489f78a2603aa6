// The orders and transforms that weights are packed in: bit for bit what plain loops write.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "engine/cpu/kernels/multiply.h"
#include "engine/cpu/kernels/transpose.h"
#include "engine/cpu/kernels/winograd.h"
#include "engine/cpu/tap_order.h"
#include "product_runs.h"

namespace paceline::engine::cpu {
namespace {

constexpr float kNothing = 42;  ///< what lies behind a result, before and after

/// In whole lines or, with `shift`, that many floats behind one.
struct Room {
  Room(std::int64_t count, int shift)
      : buffer(static_cast<std::size_t>(whole_lines(4 * (count + shift + 1)))),
        values(buffer.as<float>().subspan(static_cast<std::size_t>(shift),
                                          static_cast<std::size_t>(count) + 1)) {
    std::ranges::fill(values, std::numeric_limits<float>::quiet_NaN());
    values.back() = kNothing;
  }
  base::Buffer buffer;
  std::span<float> values;
};

TEST(TapOrder, GoesThereAndBackForEveryShapeAndPlace) {
  base::ThreadPool pool(3);
  const Case cases[] = {{16, 16, 4, 4, 3, 1, 1, 1}, {32, 48, 4, 4, 3, 1, 1, 1}, {48, 16, 4, 4, 5, 1, 2, 1},
                        {16, 32, 4, 4, 1, 1, 0, 1}, {3, 16, 4, 4, 3, 1, 1, 1},  {16, 40, 4, 4, 3, 1, 1, 1},
                        {17, 19, 4, 4, 2, 1, 0, 1}, {8, 16, 4, 4, 2, 1, 0, 1}};
  for (const Case& c : cases)
    for (const int shift : {0, 1}) {  // vectors write whole lines only: shifted results are the plain loops'
      SCOPED_TRACE(text_of(c) + (shift == 0 ? ", lines" : ", shifted"));
      const ProductShape s = shape_of(c);
      const Values weights = random_values(s.weights(), 1);
      Room packed(s.weights(), shift), back(s.weights(), shift);
      to_tap_order(s, weights.data(), packed.values.data());
      from_tap_order(s, pool, packed.values.data(), back.values.data());
      const int taps = c.kernel * c.kernel;
      std::size_t wrong = 0;
      for (int k = 0; k < c.out; ++k)
        for (int i = 0; i < c.in; ++i)
          for (int t = 0; t < taps; ++t) {
            const auto flat = static_cast<std::size_t>((k * c.in + i) * taps + t);
            wrong += packed.values[static_cast<std::size_t>((t * c.in + i) * c.out + k)] != weights[flat];
            wrong += back.values[flat] != weights[flat];
          }
      EXPECT_EQ(wrong, 0U);
      EXPECT_EQ(packed.values.back(), kNothing);
      EXPECT_EQ(back.values.back(), kNothing);
    }
}

/// Three taps at six points: 0, +-5/8, +-3/2 and infinity, one operation after the other as the vectors round
/// them.
void filter_row(const float g[3], float u[6]) {
  const float a = 0.625f, b = 1.5f;
  const float a2 = a * a, b2 = b * b, n0 = a2 * b2, na = 2 * a2 * (a2 - b2), nb = 2 * b2 * (b2 - a2);
  const float even_a = 1 / na * std::fma(a2, g[2], g[0]), even_b = 1 / nb * std::fma(b2, g[2], g[0]);
  const float all[] = {1 / n0 * g[0],
                       std::fma(a / na, g[1], even_a),
                       std::fma(-a / na, g[1], even_a),
                       std::fma(b / nb, g[1], even_b),
                       std::fma(-b / nb, g[1], even_b),
                       g[2]};
  std::ranges::copy(all, u);
}

TEST(WinogradFilters, AreThePlainTransformsBits) {
  if (!has_avx512_products()) GTEST_SKIP() << "Winograd needs AVX-512, which this processor does not have";
  constexpr int kTap = 9, kPositions = winograd::kPositions;
  for (const std::int64_t lane_stride : {9, 27, 144})
    for (const bool rotated : {false, true}) {
      // Nothing behind the last filter: the buffer ends there.
      const Values taps = random_values(15 * lane_stride + kTap, static_cast<std::uint64_t>(lane_stride));
      constexpr std::int64_t kStride = 32;
      Room u(kPositions * kStride, 0);
      winograd::transform_filters(taps.data(), lane_stride, rotated, u.values.data(), kStride);
      end_streams();
      for (int lane = 0; lane < 16; ++lane) {
        float t[3][6];
        for (int row = 0; row < 3; ++row) {
          float g[3];
          for (int i = 0; i < 3; ++i)
            g[i] = taps[static_cast<std::size_t>(lane * lane_stride +
                                                 (rotated ? 8 - 3 * row - i : 3 * row + i))];
          filter_row(g, t[row]);
        }
        for (int j = 0; j < 6; ++j) {
          const float column[3] = {t[0][j], t[1][j], t[2][j]};
          float want[6];
          filter_row(column, want);
          for (int i = 0; i < 6; ++i) {
            const float got = u.values[static_cast<std::size_t>((i * 6 + j) * kStride + lane)];
            EXPECT_EQ(std::bit_cast<std::uint32_t>(got), std::bit_cast<std::uint32_t>(want[i]))
                << "lane " << lane << " position " << i << "," << j << " rotated " << rotated;
          }
        }
      }
      EXPECT_EQ(u.values.back(), kNothing);
    }
}

}  // namespace
}  // namespace paceline::engine::cpu

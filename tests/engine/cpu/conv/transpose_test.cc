// The orders and transforms that weights are packed in: bit for bit what plain loops write.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "engine/cpu/conv/kernel_runs.h"
#include "engine/cpu/conv/transpose.h"
#include "engine/cpu/kernels/transpose/transpose.h"

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
      const ConvShape s = shape_of(c);
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

}  // namespace
}  // namespace paceline::engine::cpu

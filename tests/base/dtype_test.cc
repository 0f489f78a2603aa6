#include "base/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace paceline::base {
namespace {

TEST(BFloat16, RoundsToNearestAndTiesToEven) {
  struct Row {
    std::uint32_t bits;
    std::uint16_t rounded;
  };
  for (const auto& [bits, rounded] : {
           Row{0x3f800000, 0x3f80},  // exact
           Row{0x3f807fff, 0x3f80},  // just below the middle
           Row{0x3f808000, 0x3f80},  // the middle, even below
           Row{0x3f808001, 0x3f81},  // just above
           Row{0x3f818000, 0x3f82},  // the middle, odd below: up
           Row{0xbf818000, 0xbf82},  // the same for negative numbers
           Row{0x7f7fffff, 0x7f80},  // the largest float rounds to infinity
           Row{0x7f800000, 0x7f80},  // infinity stays
           Row{0x00000000, 0x0000}, Row{0x80000000, 0x8000}, Row{0x00008001, 0x0001},  // denormals round, too
       })
    EXPECT_EQ(to_bf16(std::bit_cast<float>(bits)).bits, rounded) << std::hex << bits;
}

TEST(BFloat16, NanStaysNanEvenWhenItsPayloadIsInTheLostHalf) {
  for (const std::uint32_t bits : {0x7fc00000u, 0x7f800001u, 0xff800001u, 0x7fffffffu})
    EXPECT_TRUE(std::isnan(to_float(to_bf16(std::bit_cast<float>(bits))))) << std::hex << bits;
}

TEST(BFloat16, EveryBf16SurvivesTheWayThroughFloat) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const BFloat16 value{static_cast<std::uint16_t>(bits)};
    if (std::isnan(to_float(value))) continue;
    ASSERT_EQ(to_bf16(to_float(value)).bits, bits);
  }
}

TEST(DType, SizesAreThoseOfTheNumbers) {
  EXPECT_EQ(size_of(DType::f64), 8u);
  EXPECT_EQ(size_of(DType::f32), sizeof(float));
  EXPECT_EQ(size_of(DType::bf16), sizeof(BFloat16));
  EXPECT_EQ(size_of(DType::i64), 8u);
  EXPECT_EQ(size_of(DType::i32), 4u);
  EXPECT_EQ(size_of(DType::u8), 1u);
}

}  // namespace
}  // namespace paceline::base

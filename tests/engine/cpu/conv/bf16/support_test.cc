// The check that a unit of bf16 tiles has to pass before it is used.

#include "engine/cpu/conv/bf16/support.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>

#include "engine/cpu/kernels/bf16/tiles.h"
#include "engine/cpu/units.h"

namespace paceline::engine::cpu::tiles {
namespace {

const TileKernels& right() { return units::kernels_of(units::Unit::emulated_amx); }
void multiply_wrong_in_one_place(const TileMultiply& m) {
  right().multiply(m);
  m.sums[7] += 0.5F;
}
void multiply_rows_wrong(const RowOfPixels& m) {
  right().multiply_row(m);
  m.sums[7] += 0.5F;
}
void multiply_neighbours_wrong(const Neighbours& m) {
  right().multiply_neighbours(m);
  m.sums[7] += 0.5F;
}
void multiply_strips_wrong(const Strip& s) {
  right().multiply_strip(s);
  for (float* sums : {s.sums, s.sums + kStripSums / 2})
    sums[7] += 0.5F;  // the last block's are in one of them
}
void visit_pairs_wrong(const PairVisit& v) {
  right().visit_pairs(v);
  v.near_sums[7] += 0.5F;  // every second visit's
}
void multiply_nothing_to_nan(const TileMultiply& m) {
  right().multiply(m);
  m.sums[3] = std::numeric_limits<float>::quiet_NaN();
}
void transpose_not_at_all(const PixelRow& row, std::uint16_t* a, std::int64_t) {
  right().gather(row, kBlock, a);
}

TEST(TileUnits, PassTheCheckOrSayWhatIsWrong) {
  using testing::HasSubstr;
  for (const units::Unit unit : units::kEmulatedUnits)
    EXPECT_EQ(trouble_with(units::kernels_of(unit)), std::nullopt);
  TileKernels broken = right();
  broken.multiply = multiply_wrong_in_one_place;
  EXPECT_THAT(trouble_with(broken).value_or("passed"), HasSubstr("computes wrong results: forward gives"));
  broken.multiply = multiply_nothing_to_nan;
  EXPECT_THAT(trouble_with(broken).value_or("passed"),
              HasSubstr("computes wrong results: forward gives nan"));
  broken = right();
  broken.multiply_row = multiply_rows_wrong;
  EXPECT_THAT(trouble_with(broken).value_or("passed"), HasSubstr("computes wrong results: forward gives"));
  broken = right();
  broken.multiply_neighbours = multiply_neighbours_wrong;
  EXPECT_THAT(trouble_with(broken).value_or("passed"),
              HasSubstr("computes wrong results: backward weights gives"));
  broken = right();
  broken.multiply_strip = multiply_strips_wrong;
  EXPECT_THAT(trouble_with(broken).value_or("passed"), HasSubstr("computes wrong results: forward gives"));
  broken = right();
  broken.visit_pairs = visit_pairs_wrong;
  EXPECT_THAT(trouble_with(broken).value_or("passed"),
              HasSubstr("computes wrong results: backward weights gives"));
  broken = right();
  broken.transpose = transpose_not_at_all;
  EXPECT_THAT(trouble_with(broken).value_or("passed"),
              HasSubstr("computes wrong results: backward weights gives"));
}

TEST(TileUnits, AreRefusedWithAReasonAndAlwaysTheSameOne) {
  for (const Unit unit : kUnits) {
    const auto refused = refusal_of(unit);
    EXPECT_EQ(refusal_of(unit), refused);
    if (refused) {
      EXPECT_THAT(*refused,
                  testing::AnyOf(testing::StartsWith("needs "), testing::StartsWith("computes wrong")));
    }
  }
}

}  // namespace
}  // namespace paceline::engine::cpu::tiles

#include "engine/cpu/peak.h"

#include <gtest/gtest.h>

namespace paceline::engine::cpu {
namespace {

// No bound on what a machine reaches: only that the figures are of what they say they are of.
TEST(Peak, IsMeasuredInBothUnits) {
  const auto one = measure_peak(1, Precision::f32);
  EXPECT_GT(one.flops_per_s, 1e8);
  EXPECT_LT(one.flops_per_s, 1e13);  // of one core
  EXPECT_GT(one.bytes_per_s, 1e8);
  EXPECT_LT(one.bytes_per_s, 1e13);
  EXPECT_GT(measure_peak(2, Precision::f32).flops_per_s, 1e8);
}

}  // namespace
}  // namespace paceline::engine::cpu

/// Sentences do the arithmetic that they print, and name a mistake where there is one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "check/check.h"

namespace paceline::check {
namespace {

Finding only_one(const std::string& csv, const std::string& rule) {
  for (const auto& one : check_table(table::read_table(csv, "t.csv")).findings)
    if (one.rule == rule) return one;
  ADD_FAILURE() << rule << " has not fired on\n" << csv;
  return {};
}

TEST(Sentences, AResidualOfStepsOfEqualLocalBatchesIsADifference) {
  const std::string csv =
      "run,workers,local_batch,time_s,time_of,communication_s\nn1,1,64,0.300,step,\nn2,2,64,0.341,step,0.041\n"
      "n4,4,64,0.352,step,0.052\n";
  EXPECT_THAT(only_one(csv, "parts.residual").sentence, testing::HasSubstr("0.341 - 0.300: a residual"));
}

TEST(Sentences, AResidualOfEpochsTakesTheShareOff) {
  const std::string csv =
      "run,workers,local_batch,time_s,time_of,communication_s\nn1,1,64,100.00,epoch,\nn2,2,64,57.00,epoch,7.00\n";
  EXPECT_THAT(only_one(csv, "parts.residual").sentence, testing::HasSubstr("57.00 - 100.00 / 2: a residual"));
}

TEST(Sentences, AShareOfALinkInBitsNamesThem) {
  const std::string head =
      "run,workers,message_bytes,time_s,time_of,claimed_bandwidth,bandwidth_unit,bandwidth_is,link,link_unit,link_is,"
      "claimed_utilisation\n";
  const auto found = only_one(head + "a,16,268435456,0.0440,step,11.44,GB/s,busbw,100,Gbit/s,one-way,0.114\n",
                              "bandwidth.link");
  EXPECT_EQ(found.severity, Severity::error);
  EXPECT_THAT(found.sentence, testing::HasSubstr("bits for bytes"));
  ASSERT_TRUE(found.corrected.has_value());
  EXPECT_NEAR(found.corrected->value, 0.915, 0.005);
}

/// One mistake in two columns is told as one: the efficiency follows from the speedup beside it.
TEST(Sentences, AnEfficiencyThatFollowsFromAWrongSpeedupSaysSo) {
  const std::string head =
      "run,workers,time_s,time_of,claimed_speedup,claimed_efficiency\nn1,1,212.0,epoch,,\n";
  const auto both = head + "n4,4,68.5,epoch,12.38,3.09\n";
  EXPECT_THAT(only_one(both, "ratio.speedup").sentence,
              testing::HasSubstr("12.38 is 4 times the ratio of the times, 3.09: "));
  EXPECT_THAT(
      only_one(both, "ratio.efficiency").sentence,
      testing::HasSubstr("3.09 is 12.38 / 4: a consequence of that speedup, which is 4 times too large"));
  EXPECT_THAT(only_one(head + "n4,4,68.5,epoch,3.09,3.09\n", "ratio.efficiency").sentence,
              testing::HasSubstr("3.09 is the speedup, not divided by 4"));
}

TEST(Sentences, WhatIsSaidOfSeveralRowsNamesThem) {
  const std::string csv = "run,workers,time_s,time_of\nn1,1,100.0,epoch\nn2,2,51.0,epoch\nn4,4,27.0,epoch\n";
  EXPECT_THAT(only_one(csv, "protocol.repeats").sentence,
              testing::StartsWith("n1, n2 and 1 more: 3 of 3 configurations"));
}

}  // namespace
}  // namespace paceline::check

/// Which mistakes about bytes and units explain a printed bandwidth, and which cannot be told apart.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "check/check.h"

namespace paceline::check {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A ResNet-18 of 11,689,512 parameters, 50,000 images, local batch 32; the communication of an epoch
/// takes 20.78 s.
std::vector<Finding> of_bandwidth(int workers, const std::string& printed, const std::string& unit,
                                  const std::string& more = "bandwidth_is,sent") {
  const auto comma = more.find(',');
  const auto csv = fmt::format(
      "run,workers,local_batch,train_samples,parameters,element_bytes,time_of,communication_s,claimed_bandwidth,"
      "bandwidth_unit,{}\na,{},32,50000,11689512,4,epoch,20.78,{},{},{}\n",
      more.substr(0, comma), workers, printed, unit, more.substr(comma + 1));
  std::vector<Finding> found;
  for (auto& one : check_table(table::read_table(csv, "t.csv")).findings)
    if (one.rule.starts_with("bandwidth.")) found.push_back(std::move(one));
  return found;
}

constexpr double kBytes = 11689512.0 * 4, kSeconds = 20.78;

struct Unit {
  const char* name;
  double bytes;
  const char* said;
};

TEST(Bandwidth, FindsThePairOfBytesAndUnit) {
  const Unit units[] = {{"GiB", 1073741824, "in GiB"},
                        {"MB", 1e6, "in MB"},
                        {"MiB", 1048576, "in MiB"},
                        {"Gbit", 1.25e8, "bits a second"},
                        {"Gibit", 1073741824.0 / 8, "in Gibit"}};
  for (const auto& unit : units)
    for (const int n : {4, 8}) {
      const double ring = 2.0 * (n - 1) / n;
      const auto found =
          of_bandwidth(n, fmt::format("{:.5g}", ring * kBytes / kSeconds / unit.bytes), "GB/s");
      ASSERT_EQ(found.size(), 1U) << unit.name;
      EXPECT_EQ(found[0].severity, Severity::error) << unit.name;
      EXPECT_THAT(found[0].sentence, HasSubstr("bytes of one step")) << unit.name;
      EXPECT_THAT(found[0].sentence, HasSubstr(unit.said)) << unit.name;
      ASSERT_TRUE(found[0].corrected);
      const double steps = 50000.0 / (32 * n);
      EXPECT_NEAR(found[0].corrected->value, ring * kBytes * steps / kSeconds / 1e9, 0.02);
    }
}

TEST(Bandwidth, NamesNoCauseThatChangesNothing) {
  // On two workers 2(N-1)/N is 1: whether it was left out cannot be seen.
  const auto found = of_bandwidth(2, "0.002096", "GB/s");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0].sentence,
              HasSubstr("bytes of one step were divided by the time of 781.5 steps, and it is in GiB"));
  EXPECT_THAT(found[0].sentence, Not(HasSubstr("was left out")));
}

TEST(Bandwidth, JoinsCausesOfOneFactor) {
  const double right = 1.5 * kBytes * 390.5 / kSeconds / 1e9;
  const auto found = of_bandwidth(4, fmt::format("{:.4f}", 4 * right), "GB/s");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0].sentence,
              HasSubstr("2(N-1) = 6 was taken for 2(N-1)/N, or the bytes of all 4 workers"));
}

TEST(Bandwidth, SaysThatDataParallelIsNoRing) {
  const auto found = of_bandwidth(4, "0.003143", "GB/s", "program,torch DataParallel");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0].sentence, HasSubstr("and 'torch DataParallel' is none"));
  const auto ring = of_bandwidth(4, "0.003143", "GB/s", "program,DistributedDataParallel");
  ASSERT_EQ(ring.size(), 1U);
  EXPECT_THAT(ring[0].sentence, Not(HasSubstr("is none")));
}

TEST(Bandwidth, LeavesOtherFiguresUnexplained) {
  // Near a pair, but not that: the digits say so.
  for (const char* const printed : {"0.003250", "0.003020"}) {
    const auto found = of_bandwidth(4, printed, "GB/s");
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].severity, Severity::warning) << found[0].sentence;
  }
}

}  // namespace
}  // namespace paceline::check

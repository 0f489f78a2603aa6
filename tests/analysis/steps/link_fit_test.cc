#include "analysis/steps/link_fit.h"

#include <gtest/gtest.h>

#include <vector>

namespace paceline::analysis {
namespace {

std::vector<TimedMessage> line(double alpha, double bandwidth, double noise = 0) {
  std::vector<TimedMessage> messages;
  double sign = 1;
  for (double bytes = 1024; bytes <= 256e6; bytes *= 4, sign = -sign)
    messages.push_back({bytes, (alpha + bytes / bandwidth) * (1 + sign * noise)});
  return messages;
}

TEST(LinkFit, FindsTheLineThatTheTimesLieOn) {
  for (const double alpha : {0.0, 5e-6, 1e-3})
    for (const double bandwidth : {1e8, 1.25e10}) {
      const auto fit = fit_link(line(alpha, bandwidth));
      ASSERT_TRUE(fit);
      EXPECT_NEAR(fit->alpha_s, alpha, 1e-12 + 1e-6 * alpha);
      EXPECT_NEAR(fit->bytes_per_s, bandwidth, 1e-6 * bandwidth);
      EXPECT_LT(fit->residual, 1e-6);
    }
}

TEST(LinkFit, SmallMessagesCountAsMuchAsLargeOnes) {
  const auto fit = fit_link(line(50e-6, 1e9, 0.05));
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->alpha_s, 50e-6, 0.1 * 50e-6);
  EXPECT_NEAR(fit->bytes_per_s, 1e9, 0.1 * 1e9);
  EXPECT_NEAR(fit->residual, 0.05, 0.02);
}

TEST(LinkFit, IsNeverALatencyBelowNothing) {
  const auto fit = fit_link(std::vector<TimedMessage>{{1000, 1e-6}, {2000, 4e-6}, {4000, 9e-6}});
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->alpha_s, 0);
}

TEST(LinkFit, SaysNothingWhereThereIsNoLine) {
  EXPECT_FALSE(fit_link(std::vector<TimedMessage>{{1000, 1e-6}, {2000, 2e-6}}));
  EXPECT_FALSE(fit_link(std::vector<TimedMessage>{{1000, 3e-6}, {2000, 2e-6}, {4000, 1e-6}}));
  EXPECT_FALSE(fit_link(std::vector<TimedMessage>{{1000, 1e-6}, {1000, 1e-6}, {1000, 1e-6}}));
  EXPECT_FALSE(fit_link(std::vector<TimedMessage>{{1000, 0}, {2000, 1}, {4000, 2}}));
}

}  // namespace
}  // namespace paceline::analysis

#include "cli/quiet_moment.h"

#include <gtest/gtest.h>

#include <vector>

namespace paceline::cli {
namespace {

/// A load that lasts for so many looks.
struct Lasting {
  int looks = 0;
  int calls = 0;
  std::optional<measure::LoadNow> operator()(double) {
    ++calls;
    return measure::LoadNow{.cores = looks-- > 0 ? 1.0 : 0.0};
  }
};

struct Fixture {
  QuietMoment moment(std::stop_token stop = {}) {
    return {2, 10, screen, std::move(stop), [this](double seconds) { return load(seconds); }};
  }
  Screen screen{true};
  Lasting load;
};

TEST(QuietMoment, ReturnsAtOnceIfNobodyWorks) {
  Fixture on;
  auto quiet = on.moment();
  quiet.wait();
  EXPECT_EQ(on.load.calls, 1);
  EXPECT_EQ(quiet.waited_s(), 0);
}

TEST(QuietMoment, WaitsUntilOthersHaveEnded) {
  Fixture on;
  on.load.looks = 12;
  auto quiet = on.moment();
  quiet.wait();
  EXPECT_EQ(on.load.calls, 13);
  EXPECT_DOUBLE_EQ(quiet.waited_s(), 3);
}

TEST(QuietMoment, GivesUpAndNeverWaitsAgain) {
  Fixture on;
  on.load.looks = 1'000'000;
  auto quiet = on.moment();
  quiet.wait();
  EXPECT_NEAR(quiet.waited_s(), 20, 0.5);
  const int calls = on.load.calls;
  quiet.wait();
  EXPECT_EQ(on.load.calls, calls);
}

TEST(QuietMoment, BoundsAllWaitsTogether) {
  Fixture on;
  auto quiet = on.moment();
  for (int wait = 0; wait < 5; ++wait) {
    on.load.looks = 60;  // 15 s
    quiet.wait();
  }
  EXPECT_NEAR(quiet.waited_s(), 30, 0.5);
}

TEST(QuietMoment, EndsWhenItIsStopped) {
  Fixture on;
  std::stop_source stop;
  stop.request_stop();
  on.load.looks = 100;
  on.moment(stop.get_token()).wait();
  EXPECT_EQ(on.load.calls, 0);
}

TEST(QuietMoment, NamesCoresOnlyIfTheyContainIt) {
  const measure::LoadNow load{.cores = 2.1, .programs = {{.name = "ninja", .cores = 2.0}}};
  EXPECT_EQ(text_about_load(load, 4), "other programs use 2.1 of 4 cores now (ninja 2.0)");
  EXPECT_EQ(text_about_load(load, 1), "other programs use 2.1 cores now (ninja 2.0)");
}

TEST(QuietMoment, TellsNoneFromLittleAndUnknown) {
  EXPECT_EQ(text_about_timings(std::nullopt, 2), "the system does not say what other programs do");
  EXPECT_EQ(text_about_timings(measure::LoadNow{.cores = 0.04}, 2), "no other program works now");
  EXPECT_EQ(text_about_timings(measure::LoadNow{.cores = 0.15}, 2),
            "other programs use 0.1 of 2 cores now: too little for timings to show");
  EXPECT_EQ(text_about_timings(measure::LoadNow{.cores = 1}, 2),
            "other programs use 1.0 of 2 cores now: timings will show it");
}

TEST(LoadNow, IsSmallAndNotNegative) {
  const auto load = measure::load_now(0.2);
  ASSERT_TRUE(load.has_value());
  EXPECT_GE(load->cores, 0);
}

}  // namespace
}  // namespace paceline::cli

#include "comm/work_meter.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/processor_time.h"

namespace paceline::comm {
namespace {

constexpr double kBeat = 0.5;  ///< seconds

int beats_until_it_rests(Effort& effort, double spent_s) {
  for (int beat = 1; beat < 100; ++beat)
    if (!effort.is_work(spent_s, kBeat)) return beat;
  return 100;
}

TEST(Effort, EndsWithTheWork) {
  Effort effort;
  EXPECT_TRUE(effort.is_work(1.0, kBeat));
  EXPECT_EQ(beats_until_it_rests(effort, 0.0005), 1);
}

TEST(Effort, IsWorkFromHalfAPercentOfACoreOn) {
  Effort effort;
  EXPECT_TRUE(effort.is_work(1.0, kBeat));
  EXPECT_EQ(beats_until_it_rests(effort, 0.0052 * kBeat), 100);
  EXPECT_EQ(beats_until_it_rests(effort, 0.0048 * kBeat), 1);
}

TEST(Effort, ComesBackWithinThreeSecondsOfLittleWork) {
  Effort effort;
  EXPECT_FALSE(effort.is_work(0, 60));
  int beats = 1;
  while (!effort.is_work(0.011 * kBeat, kBeat) && beats < 100) ++beats;
  EXPECT_LE(beats * kBeat, 3);
}

TEST(Effort, IsNotWhatAProcessThatStaysAliveIsChargedNowAndThen) {
  Effort effort;
  EXPECT_TRUE(effort.is_work(1.0, kBeat));
  for (int beat = 0; beat < 3; ++beat) EXPECT_FALSE(effort.is_work(0, kBeat));
  EXPECT_FALSE(effort.is_work(0.008, kBeat));
  EXPECT_FALSE(effort.is_work(0.004, kBeat));
  EXPECT_TRUE(effort.is_work(0.1, kBeat)) << "but this is";
}

void compute(double seconds) {
  const double until = base::thread_processor_s() + seconds;
  while (base::thread_processor_s() < until) {
  }
}

TEST(WorkMeter, SeesTheThreadsOfItsProcessButNotTheOneThatAsks) {
  WorkMeter meter;
  bool rests = false;
  for (int look = 0; look < 10 && !rests; ++look) {  // a page that is read meanwhile is work as well
    compute(0.03);
    rests = !meter.has_worked();
  }
  EXPECT_TRUE(rests);
  std::thread(compute, 0.03).join();
  EXPECT_TRUE(meter.has_worked());
}

}  // namespace
}  // namespace paceline::comm

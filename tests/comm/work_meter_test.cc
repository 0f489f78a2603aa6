#include "comm/work_meter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

#include "base/processor_time.h"

namespace paceline::comm {
namespace {

constexpr double kBeat = 0.5;      ///< seconds, of processes
constexpr double kLook = 0.25;     ///< of the workers of one process
constexpr double kHeldUp = 3;      ///< what a process may rest before others say it
constexpr double kForeign = 0.02;  ///< charged to a process that rests; 2 to 8 ms were seen

/// Of beats that spend what `spent_at` says from 0 on, the longest time from a sign of work to the next, or
/// to the end.
template <class SpentAt>
double longest_rest(Effort& effort, double beat, double seconds, SpentAt spent_at) {
  double longest = 0, last = 0;
  for (int i = 1; i * beat <= seconds; ++i) {
    longest = std::max(longest, i * beat - last);
    if (effort.is_work(spent_at(i), beat)) last = i * beat;
  }
  return longest;
}

TEST(Effort, OfOneThatWorksIsSeenEverySecond) {
  for (const double beat : {kBeat, kLook})
    for (const double share : {0.011, 0.1, 2.0}) {
      Effort effort;
      EXPECT_LE(longest_rest(effort, beat, 60, [&](int) { return share * beat; }), 1);
    }
}

TEST(Effort, OfOneThatPausesEveryThirdBeatIsSeenInTime) {
  for (const double beat : {kBeat, kLook}) {
    Effort effort;
    EXPECT_LT(longest_rest(effort, beat, 60, [&](int i) { return i % 3 == 0 ? 0 : 0.02 * beat; }), kHeldUp);
  }
}

TEST(Effort, OfOneThatWorksInBurstsIsSeenInTime) {
  for (const double beat : {kBeat, kLook})
    for (const double length : {0.05, 0.2, 0.5})
      for (const double period : {0.6, 1.0, 1.5, 2.0}) {
        Effort effort;  // a core for `length` in every `period`
        const auto spent_by = [&](double s) {
          return std::floor(s / period) * length + std::min(std::fmod(s, period), length);
        };
        const auto spent_at = [&](int i) { return spent_by(i * beat) - spent_by((i - 1) * beat); };
        EXPECT_LT(longest_rest(effort, beat, 120, spent_at), kHeldUp) << length << " s in " << period;
      }
}

TEST(Effort, OfOneThatOnlyStaysAliveIsNone) {
  Effort effort;
  EXPECT_EQ(longest_rest(effort, kBeat, 60, [](int) { return 0.009 * kBeat; }), 60);
}

TEST(Effort, OfALongTimeBetweenTwoBeatsCounts) {
  Effort effort;
  EXPECT_TRUE(effort.is_work(1, 5));
}

/// How long after its last work one that worked for `worked` beats is still said to work, when it is charged
/// kForeign in the beats of `charged` behind it.
double seen_to_work_for(int worked, double beat, std::vector<int> charged) {
  Effort effort;
  double last = 0;
  for (int i = 1; i < worked + 40; ++i) {
    const bool is_foreign = std::find(charged.begin(), charged.end(), i - worked) != charged.end();
    if (effort.is_work(i <= worked ? beat : is_foreign ? kForeign : 0, beat)) last = (i - worked) * beat;
  }
  return last;
}

TEST(Effort, OneForeignChargeWheneverItComesIsSeenForNoMoreThanABeat) {
  for (int worked = 1; worked < 12; ++worked)
    for (int at = 1; at < 12; ++at) {
      EXPECT_LE(seen_to_work_for(worked, kBeat, {at}), 0.5);
      EXPECT_LE(seen_to_work_for(worked, kLook, {at}), 0.75);
    }
}

TEST(Effort, SomeForeignChargesFurtherApartAreNoWork) {
  for (int worked = 1; worked < 12; ++worked)
    for (int at = 3; at < 12; ++at) {
      EXPECT_LE(seen_to_work_for(worked, kBeat, {at, at + 2}), 0.5);
      EXPECT_LE(seen_to_work_for(worked, kBeat, {at, at + 3, at + 6, at + 9}), 0.5);
    }
  EXPECT_GT(seen_to_work_for(4, kBeat, {6, 7}), 3) << "neighbours are work";
  EXPECT_GT(seen_to_work_for(4, kBeat, {6, 8, 10}), 3) << "as is every other one";
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
    compute(0.05);
    rests = !meter.has_worked();
  }
  EXPECT_TRUE(rests);
  std::thread(compute, 0.05).join();
  EXPECT_TRUE(meter.has_worked());
}

}  // namespace
}  // namespace paceline::comm

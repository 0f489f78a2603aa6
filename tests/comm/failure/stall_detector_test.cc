#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "comm/failure/stall_detector.h"
#include "comm/ranks.h"

namespace paceline::comm::local {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr milliseconds kLook{250};
constexpr milliseconds kHeldUp{3000};

struct Look {
  std::vector<RankStatus> places;
  std::vector<bool> came;
  bool has_worked = true;
};

/// Who is named, and after how many milliseconds of waiting; 0: nobody within `looks` looks. `pause`: the
/// process is stopped for so long before look 8.
struct Named {
  std::vector<std::size_t> by;
  long after_ms = 0;
};
Named named(int looks, const std::function<Look(int)>& at, milliseconds pause = milliseconds(0)) {
  auto now = base::TimePoint{} + std::chrono::hours(1);
  const auto begin = now;
  StallDetector stall_detector(begin, kLook, kHeldUp);
  for (int look = 1; look <= looks; ++look) {
    now += kLook + (look == 8 ? pause : milliseconds(0));
    const auto [places, came, has_worked] = at(look);
    const auto held = stall_detector.look(places, came, has_worked, now);
    if (held.by.empty()) continue;
    return {held.by, std::chrono::duration_cast<milliseconds>(now - begin).count()};
  }
  return {};
}

RankStatus place(std::int64_t step, std::int64_t collectives = 5) {
  return {.step = step, .phase = "waiting for data", .collectives = collectives};
}

TEST(StallDetector, NamesWhoStaysWhereItIsInTheLoopEvenIfTheProcessWorks) {
  const auto stuck = named(40, [](int) {
    return Look{{place(97, 6), place(97), place(97, 6)}, {true, false, true}};
  });
  EXPECT_THAT(stuck.by, ElementsAre(1));
  EXPECT_GE(stuck.after_ms, 3000);
  EXPECT_LE(stuck.after_ms, 3500);
  const auto moves = named(40, [](int look) {
    return Look{{place(97, 6), place(97, look / 4)}, {true, false}};
  });
  EXPECT_THAT(moves.by, IsEmpty()) << "slow, but it posts a bucket a second";
}

TEST(StallDetector, OutsideOfTheLoopWorkIsNoSign) {
  const auto look = [](bool has_worked) {
    return [=](int) { return Look{{place(0), place(0, 6)}, {false, true}, has_worked}; };
  };
  EXPECT_THAT(named(200, look(true)).by, IsEmpty()) << "it reads a checkpoint";
  EXPECT_THAT(named(40, look(false)).by, ElementsAre(0));
}

TEST(StallDetector, TimeInWhichTheProcessWasStoppedDoesNotCount) {
  const auto at = [](int) { return Look{{place(97, 6), place(97)}, {true, false}}; };
  EXPECT_THAT(named(15, at, std::chrono::minutes(5)).by, IsEmpty());
  EXPECT_THAT(named(25, at, std::chrono::minutes(5)).by, ElementsAre(1));
}

TEST(StallDetector, WhereNoneWaitsAndNothingIsDoneNamesAll) {
  const auto hang_since = [](int look) {
    return [=](int now) { return Look{{place(97), place(98)}, {false, false}, now <= look}; };
  };
  const auto stuck = named(40, hang_since(4));
  EXPECT_THAT(stuck.by, ElementsAre(0, 1));
  EXPECT_EQ(stuck.after_ms, 1000 + 3000);
  EXPECT_THAT(named(200, hang_since(1000)).by, IsEmpty()) << "a step of minutes, or an evaluation";
  const auto slow = named(200, [](int look) {
    return Look{{place(97 + look / 8), place(98)}, {false, false}, false};
  });
  EXPECT_THAT(slow.by, IsEmpty()) << "a step each two seconds, of a loader that sleeps";
  EXPECT_THAT(named(18, hang_since(0), std::chrono::minutes(5)).by, IsEmpty()) << "suspended in between";
  EXPECT_THAT(named(25, hang_since(0), std::chrono::minutes(5)).by, ElementsAre(0, 1));
}

TEST(LocalFailure, WhereAllHangAllAreNamedOnceAndGivenUpAtTheDeadline) {
  for (const int ranks : {1, 2}) {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::string> said;
    std::string failed;
    LocalOptions options;
    options.deadline = std::chrono::seconds(2);
    options.stall_options = {.held_up = milliseconds(300),
                             .say =
                                 [&](const std::string& text) {
                                   const std::lock_guard lock(mutex);
                                   said.push_back(text);
                                 },
                             .failed =
                                 [&](const std::string& text, base::ErrorKind) {
                                   const std::lock_guard lock(mutex);
                                   failed = text;
                                   changed.notify_all();
                                 }};
    const auto errors = on_ranks(ranks, options, [&](Communicator& comm) {
      comm.at(97, "waiting for data");
      {  // not by looking now and then, which is work
        std::unique_lock lock(mutex);
        changed.wait_for(lock, std::chrono::seconds(30), [&] { return !failed.empty(); });
      }
      comm.barrier();
    });
    for (const auto& error : errors) EXPECT_THAT(error, ::testing::HasSubstr("the run is given up"));
    const auto names = ::testing::AllOf(::testing::HasSubstr("no rank has done anything for"),
                                        ::testing::HasSubstr("rank 0 on host"),
                                        ::testing::HasSubstr(fmt::format("rank {} on host", ranks - 1)),
                                        ::testing::HasSubstr("(last in waiting for data of step 97)"));
    EXPECT_THAT(said, ElementsAre(::testing::AllOf(names, ::testing::HasSubstr("is given up after 2 s"))));
    EXPECT_THAT(failed, names);
  }
}

TEST(LocalFailure, WhoKeepsTheOthersWaitingIsNamedOnceAndEarly) {
  std::mutex mutex;
  std::vector<std::string> said;
  std::atomic<int> failures{0};
  LocalOptions options;
  options.stall_options = {.held_up = milliseconds(300),
                           .say =
                               [&](const std::string& text) {
                                 const std::lock_guard lock(mutex);
                                 said.push_back(text);
                               },
                           .failed = [&](const std::string&, base::ErrorKind) { ++failures; }};
  const auto errors = on_ranks(3, options, [](Communicator& comm) {
    std::vector<float> values(10);
    comm.at(97, comm.rank() == 1 ? "waiting for data" : "backward");
    if (comm.rank() == 1) std::this_thread::sleep_for(milliseconds(1500));
    comm.all_reduce(values)->wait();
  });
  EXPECT_THAT(errors, ::testing::Each(std::string()));
  EXPECT_THAT(said,
              ElementsAre(::testing::AllOf(
                  ::testing::HasSubstr("the others have waited"), ::testing::HasSubstr("rank 1 on host"),
                  ::testing::HasSubstr("(last in waiting for data of step 97); it is given up after 60 s"))));
  EXPECT_EQ(failures, 0);
}

}  // namespace
}  // namespace paceline::comm::local

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

// What a process's own threads leave for its next heartbeat.

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "comm/failure/heartbeat.h"

namespace paceline::comm {
namespace {

using std::chrono::milliseconds;

TEST(Heartbeat, TakesWordOfAPlaceAndTheEndOfAWaitForSigns) {
  Heartbeat heartbeat;
  Doing doing = Doing::works;
  for (int beat = 0; beat < 50 && doing != Doing::rests; ++beat) {
    std::this_thread::sleep_for(milliseconds(20));
    doing = heartbeat.now().doing;
  }
  ASSERT_EQ(doing, Doing::rests);
  heartbeat.at(0, "the start");
  EXPECT_EQ(heartbeat.now().doing, Doing::works) << "also where it was before";
  heartbeat.enters(Channel::exchanges);
  heartbeat.looks(Channel::exchanges, false);
  EXPECT_EQ(heartbeat.now().doing, Doing::waits);
  heartbeat.leaves(Channel::exchanges);
  EXPECT_EQ(heartbeat.now().doing, Doing::works) << "others may not have told yet that they wait no longer";
}

TEST(Heartbeat, TellsThatAThreadWaitsWhileItLooksAndThatItHangsWhenItDoesNot) {
  Heartbeat heartbeat;
  heartbeat.at(7, "backward");
  heartbeat.enters(Channel::reductions);
  EXPECT_EQ(place_of(heartbeat.now()), "backward of step 7");
  for (int beat = 0; beat < 10; ++beat) {
    heartbeat.looks(Channel::reductions, false);
    EXPECT_EQ(heartbeat.now().doing, Doing::waits);
  }
  for (int beat = 0; beat < 5; ++beat) EXPECT_EQ(heartbeat.now().doing, Doing::waits);
  EXPECT_EQ(heartbeat.now().doing, Doing::rests) << "six heartbeats without a look";
  EXPECT_EQ(heartbeat.now().waited, milliseconds(0));
  heartbeat.leaves(Channel::reductions);
  heartbeat.enters(Channel::exchanges);
  heartbeat.looks(Channel::exchanges, true);
  EXPECT_EQ(heartbeat.now().doing, Doing::follows);
  EXPECT_EQ(heartbeat.now().collectives, 2);
}

TEST(Heartbeat, TellsWhoseRankOfItsOwnItWaitsForWhereItDoesNotWaitForOthers) {
  Heartbeat heartbeat;
  heartbeat.at(7, "the reduction of gradients");
  heartbeat.held_up_by(RankStatus{.step = 7, .phase = "waiting for data", .rank = 3});
  EXPECT_EQ(place_of(heartbeat.now()), "waiting for data of step 7");
  EXPECT_EQ(heartbeat.now().rank, 3);
  heartbeat.looks(Channel::reductions, false);
  EXPECT_EQ(heartbeat.now().rank, -1);
  heartbeat.leaves(Channel::reductions);
  heartbeat.held_up_by({});
  EXPECT_EQ(place_of(heartbeat.now()), "the reduction of gradients of step 7");
  EXPECT_EQ(heartbeat.now().rank, -1);
}

TEST(Heartbeat, TellsWorkFromRest) {
  Heartbeat heartbeat;
  (void)heartbeat.now();
  std::thread computes([] {  // by its processor time, of which a busy machine gives little in any wall time
    while (base::thread_processor_s() < 0.1) {
    }
  });
  computes.join();
  EXPECT_EQ(heartbeat.now().doing, Doing::works);
  Doing doing = Doing::works;
  for (int beat = 0; beat < 50 && doing != Doing::rests; ++beat) {  // a page that is read back is work too
    std::this_thread::sleep_for(milliseconds(200));
    doing = heartbeat.now().doing;
  }
  EXPECT_EQ(doing, Doing::rests);
}

}  // namespace

namespace {

TEST(Failure, IsReadAsItWasWritten) {
  for (const auto kind :
       {base::ErrorKind::usage, base::ErrorKind::data, base::ErrorKind::device, base::ErrorKind::comm})
    for (const std::optional<double> detection_s : {std::optional<double>(), std::optional(3.512)}) {
      const Failure read = failure_of(
          line_of({.kind = kind, .text = "rank 3 gave up: the disk  is full", .detection_s = detection_s}));
      EXPECT_EQ(read.kind, kind);
      EXPECT_EQ(read.text, "rank 3 gave up: the disk  is full");
      EXPECT_EQ(read.detection_s.has_value(), detection_s.has_value());
      EXPECT_DOUBLE_EQ(read.detection_s.value_or(0), detection_s.value_or(0));
      EXPECT_FALSE(read.of_first()) << "process 0 says it";
    }
}

TEST(Failure, OfALineThatIsNoneIsALossOfThatText) {
  const Failure read = failure_of("x y the cable");
  EXPECT_EQ(read.kind, base::ErrorKind::comm);
  EXPECT_FALSE(read.detection_s);
  EXPECT_EQ(read.text, "the cable");
  EXPECT_EQ(failure_of("").text, "");
}

}  // namespace
}  // namespace paceline::comm

#include "comm/failure/rank_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace paceline::comm {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr milliseconds kLongest{3000};
const base::TimePoint kNow = base::TimePoint{} + std::chrono::hours(1);

/// A process that did `doing` for `still` in `step`; it works or has worked `worked` ago.
WatchedProcess one(Doing doing, milliseconds still, std::int64_t step = 97, std::int64_t collectives = 5,
                   milliseconds worked = std::chrono::minutes(1)) {
  const bool waits = doing == Doing::waits || doing == Doing::follows;
  return {.at = {.step = step,
                 .phase = "backward",
                 .doing = doing,
                 .waited = waits ? still : milliseconds(0),
                 .collectives = collectives},
          .moved = kNow - still,
          .worked = kNow - worked};
}

std::vector<std::size_t> by(const std::vector<WatchedProcess>& all) {
  std::vector<const WatchedProcess*> seen;
  for (const auto& process : all) seen.push_back(&process);
  return who_holds_up(seen, kLongest, kNow).by;
}

TEST(RankStatus, AreReadAsTheyWereWritten) {
  const RankStatus where{.step = 97,
                         .phase = "the reduction of gradients",
                         .doing = Doing::follows,
                         .waited = milliseconds(3120),
                         .collectives = 812,
                         .rank = 3};
  const auto read = rank_status_of(line_of(where));
  ASSERT_TRUE(read);
  EXPECT_EQ(place_of(*read), "the reduction of gradients of step 97");
  EXPECT_EQ(line_of(*read), line_of(where));
  EXPECT_EQ(read->rank, 3);
  EXPECT_EQ(rank_status_of(line_of(RankStatus{}))->rank, -1);
  EXPECT_FALSE(rank_status_of("97 812 sleeps 0 - backward"));
  EXPECT_EQ(place_of({}), "the start");
}

TEST(WhoHoldsUp, InTheLoopIsWhoStaysWhereItIsWhileOthersWait) {
  const auto waits = one(Doing::waits, milliseconds(3500));
  EXPECT_THAT(by({waits, one(Doing::works, milliseconds(3500)), waits}), ElementsAre(1))
      << "computing is no excuse: all others have done it";
  EXPECT_THAT(by({one(Doing::rests, milliseconds(3500)), waits, waits}), ElementsAre(0));
  EXPECT_THAT(by({waits, one(Doing::works, milliseconds(2000)), waits}), IsEmpty()) << "it has moved since";
  const auto a_little = one(Doing::waits, milliseconds(1000));
  EXPECT_THAT(by({a_little, one(Doing::rests, milliseconds(9000)), a_little}), IsEmpty());
}

TEST(WhoHoldsUp, OutsideOfTheLoopIsWhoNeitherComputesNorReads) {
  const auto waits = one(Doing::waits, milliseconds(60000), 0);
  const auto measures = one(Doing::works, milliseconds(60000), 0, 5, milliseconds(500));
  const auto slow_disk = one(Doing::rests, milliseconds(60000), 0, 5, milliseconds(2000));
  const auto dead_disk = one(Doing::rests, milliseconds(60000), 0, 5, milliseconds(3500));
  EXPECT_THAT(by({measures, waits, waits}), IsEmpty());
  EXPECT_THAT(by({waits, slow_disk, waits}), IsEmpty());
  EXPECT_THAT(by({waits, dead_disk, measures}), ElementsAre(1));
}

TEST(WhoHoldsUp, WhereAllWaitIsWhoIsBehind) {
  const auto waits = one(Doing::waits, milliseconds(3500), 97, 6);
  const auto behind = one(Doing::waits, milliseconds(4000), 97, 5);
  EXPECT_THAT(by({waits, waits, behind}), ElementsAre(2));
  EXPECT_THAT(by({behind, waits, waits}), ElementsAre(0));
  EXPECT_THAT(by({waits, waits, waits}), IsEmpty()) << "a slow link";
  EXPECT_THAT(by({waits, one(Doing::waits, milliseconds(100), 97, 5)}), IsEmpty()) << "it has just come";
  auto silent = one(Doing::waits, milliseconds(3500), 97, 4);
  silent.is_out = true;
  EXPECT_THAT(by({waits, behind, silent}), IsEmpty()) << "all may wait for the silent one";
}

TEST(WhoHoldsUp, WhoFollowsWaitsForTheFirstAloneAndForAsLongAsThatWorks) {
  const auto follows = one(Doing::follows, std::chrono::minutes(5), 0);
  const auto works = one(Doing::works, milliseconds(60000), 0, 5, milliseconds(500));
  const auto rests = one(Doing::rests, milliseconds(60000), 0, 5, milliseconds(3500));
  const auto waits = one(Doing::waits, milliseconds(3500));
  EXPECT_THAT(by({works, follows, follows}), IsEmpty());
  EXPECT_THAT(by({rests, follows, follows}), ElementsAre(0));
  EXPECT_THAT(by({waits, one(Doing::rests, milliseconds(3500)), follows}), ElementsAre(1)) << "a cell of two";
  EXPECT_THAT(by({waits, one(Doing::works, milliseconds(100)), follows}), IsEmpty());
}

TEST(WhoHoldsUp, WhereNobodyWaitsAndNobodyDoesAnythingAreAll) {
  const auto hangs = one(Doing::rests, milliseconds(4000));
  const auto opens = one(Doing::rests, milliseconds(3500), 0);
  const auto follows = one(Doing::follows, std::chrono::minutes(5), 0);
  EXPECT_THAT(by({hangs}), ElementsAre(0));
  EXPECT_THAT(by({hangs, opens, hangs}), ElementsAre(0, 1, 2));
  EXPECT_THAT(by({hangs, opens, follows}), ElementsAre(0, 1)) << "a cell of two";
  EXPECT_THAT(by({hangs, one(Doing::rests, milliseconds(2000))}), IsEmpty()) << "it has moved since";
  EXPECT_THAT(by({hangs, one(Doing::rests, milliseconds(4000), 97, 5, milliseconds(2000))}), IsEmpty())
      << "it has read since, or computed";
  EXPECT_THAT(by({hangs, one(Doing::works, milliseconds(4000), 97, 5, milliseconds(0))}), IsEmpty())
      << "a long step, for which the others will wait";
  EXPECT_THAT(by({hangs, one(Doing::waits, milliseconds(1000))}), IsEmpty()) << "not yet";

  const auto all_hang = [&](const std::vector<const WatchedProcess*>& all) {
    return who_holds_up(all, kLongest, kNow);
  };
  EXPECT_TRUE(all_hang({&hangs, &opens}).is_standstill());
  EXPECT_EQ(all_hang({&hangs, &opens}).rested, milliseconds(3500));
  EXPECT_FALSE(all_hang({&hangs, &follows}).is_standstill()) << "the others wait for the first";
  auto silent = follows;
  silent.is_out = true;
  EXPECT_THAT(all_hang({&silent, &hangs}).by, ElementsAre(1));
  EXPECT_THAT(all_hang({&silent}).by, IsEmpty());
}

}  // namespace
}  // namespace paceline::comm

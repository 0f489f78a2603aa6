#include "train/run_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error.h"
#include "comm/make.h"

namespace paceline::train {
namespace {

TEST(RunRanks, EachRankHasAThreadOfItsOwn) {
  const auto communicators = comm::make_local(3);
  std::vector<std::thread::id> threads(3);
  run_ranks(communicators, [&](std::size_t rank) {
    communicators[rank]->barrier();  // all are there at once
    threads[rank] = std::this_thread::get_id();
  });
  EXPECT_THAT(threads, testing::Each(testing::Ne(std::this_thread::get_id())));
  EXPECT_NE(threads[0], threads[1]);
  EXPECT_NE(threads[1], threads[2]);
}

TEST(RunRanks, ThrowsWhatBeganItAndNotWhatFollowed) {
  const auto communicators = comm::make_local(3);
  EXPECT_THROW(run_ranks(communicators,
                         [&](std::size_t rank) {
                           if (rank == 2) throw std::out_of_range("began it");
                           communicators[rank]->barrier();
                         }),
               std::out_of_range);
}

TEST(RunRanks, ARankThatGetsNoThreadEndsThoseThatWaitForIt) {
  const auto communicators = comm::make_local(3);
  int started = 0;
  const auto two_at_most = [&](std::function<void()> work) {
    if (++started > 2)
      throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    return std::jthread(std::move(work));
  };
  try {
    run_ranks(
        communicators, [&](std::size_t rank) { communicators[rank]->barrier(); }, two_at_most);
    FAIL() << "expected an error";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::device);
    EXPECT_THAT(error.what(), testing::StartsWith("worker thread 3 of 3 could not be started: "));
  }
}

TEST(RunRanks, AThreadThatTheWorkIsRefusedIsSaidAsOne) {
  const auto communicators = comm::make_local(2);
  try {
    run_ranks(communicators, [&](std::size_t rank) {
      if (rank == 1) throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
      communicators[rank]->barrier();
    });
    FAIL() << "expected an error";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::device);
    EXPECT_THAT(error.what(), testing::StartsWith("a thread could not be started: "));
  }
}

// A configuration of a search in several processes that diverged ended all of them.
TEST(RunRanks, WhatAllAgreedOnLeavesTheCommunicatorsAsTheyWere) {
  const auto communicators = comm::make_local(2);
  EXPECT_THROW(run_ranks(communicators,
                         [&](std::size_t rank) {
                           communicators[rank]->barrier();
                           throw base::AgreedError(base::ErrorKind::data, "not finite");
                         }),
               base::AgreedError);
  run_ranks(communicators, [&](std::size_t rank) { communicators[rank]->barrier(); });
}

TEST(RunRanks, WhatOneRankAloneMeetsCountsBeforeWhatAllAgreedOn) {
  const auto communicators = comm::make_local(2);
  try {
    run_ranks(communicators, [&](std::size_t rank) {
      if (rank == 0) throw base::AgreedError(base::ErrorKind::data, "not finite");
      base::fail(base::ErrorKind::device, "its memory is gone");
    });
    FAIL() << "expected an error";
  } catch (const base::Error& error) {
    EXPECT_STREQ(error.what(), "its memory is gone");
  }
}

}  // namespace
}  // namespace paceline::train

// What goes to and from one rank: scatter, gather, reduce.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/summation_tree.h"
#include "comm/emulate.h"
#include "comm/make.h"
#include "ranks.h"

namespace paceline::comm {
namespace {

using ::testing::HasSubstr;

constexpr int kRanks = 3;

TEST(Star, ScattersAPartToEachAndGathersThemAgain) {
  for (const int root : {0, 2}) {
    const auto errors = on_ranks(kRanks, {}, [&](Communicator& comm) {
      std::vector<int> whole(comm.rank() == root ? kRanks * 5 : 0);
      std::iota(whole.begin(), whole.end(), 0);
      std::vector<int> mine(5);
      comm.scatter(std::as_bytes(std::span(whole)), std::as_writable_bytes(std::span(mine)), root);
      for (int i = 0; i < 5; ++i) EXPECT_EQ(mine[static_cast<std::size_t>(i)], 5 * comm.rank() + i);
      for (int& value : mine) value *= 10;
      comm.gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(whole)), root);
      for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(whole[i], 10 * static_cast<int>(i));
    });
    EXPECT_EQ(errors, std::vector<std::string>(kRanks));
  }
}

TEST(Star, ThePartOfTheRootMayStayWhereItIs) {
  const auto errors = on_ranks(kRanks, {}, [](Communicator& comm) {
    std::vector<int> whole{1, 2, 3}, part(1);
    const auto mine = comm.rank() == 0 ? std::span(whole).first(1) : std::span(part);
    const auto all = comm.rank() == 0 ? std::span(whole) : std::span(whole).first(0);
    comm.scatter(std::as_bytes(all), std::as_writable_bytes(mine), 0);
    EXPECT_EQ(mine.front(), comm.rank() + 1);
  });
  EXPECT_EQ(errors, std::vector<std::string>(kRanks));
}

TEST(Star, ReducesInTheTreesOrderAtTheRootAlone) {
  constexpr std::size_t kCount = 10'001;
  const auto value = [](int rank, std::size_t i) {
    return 1.0f / static_cast<float>(rank + 1) + 1e-3f * static_cast<float>(i % 97);
  };
  const auto errors = on_ranks(kRanks, {}, [&](Communicator& comm) {
    std::vector<float> values(kCount);
    for (std::size_t i = 0; i < kCount; ++i) values[i] = value(comm.rank(), i);
    comm.reduce(values, 1);
    for (std::size_t i = 0; i < kCount; ++i) {
      const float sum = (value(0, i) + value(1, i)) + value(2, i);
      ASSERT_EQ(values[i], comm.rank() == 1 ? sum : value(comm.rank(), i)) << i;
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(kRanks));
}

TEST(Star, CountsWhatPassesTheRoot) {
  const auto errors = on_ranks(kRanks, {}, [](Communicator& comm) {
    const bool is_root = comm.rank() == 0;
    std::vector<std::byte> whole(is_root ? kRanks * 8 : 0), mine(8);
    std::vector<float> values(10);
    comm.scatter(whole, mine, 0);
    EXPECT_EQ(comm.traffic().bytes_sent, is_root ? 16 : 0);
    EXPECT_EQ(comm.traffic().bytes_received, is_root ? 0 : 8);
    comm.gather(mine, whole, 0);
    comm.reduce(values, 0);
    EXPECT_EQ(comm.traffic().bytes_sent, is_root ? 16 : 8 + 40);
    EXPECT_EQ(comm.traffic().bytes_received, is_root ? 16 + 80 : 8);
  });
  EXPECT_EQ(errors, std::vector<std::string>(kRanks));
}

TEST(Star, FindsRanksThatDisagree) {
  const auto errors = on_ranks(2, {}, [](Communicator& comm) {
    std::vector<float> values(comm.rank() == 0 ? 10 : 11);
    comm.reduce(values, 0);
  });
  EXPECT_THAT(errors[0] + errors[1], HasSubstr("sum of 10 floats at rank 0"));
}

TEST(Star, OverAnEmulatedLinkPassesItOnceForEachOther) {
  // 2 others x (20 ms + 20 kB / 1 MB/s) = 80 ms. A thread may be woken late.
  auto communicators =
      emulate(make_local(kRanks), {.link = EmulatedLink{.latency_s = 0.02, .bytes_per_s = 1e6}});
  std::vector<std::jthread> threads;
  for (auto& comm : communicators)
    threads.emplace_back([&] {
      std::vector<float> values(5'000, 1.0f);
      comm->barrier();
      const auto begin = base::Clock::now();
      comm->reduce(values, 0);
      EXPECT_GE(base::seconds_since(begin), 0.08);
      EXPECT_EQ(values.front(), comm->rank() == 0 ? 3.0f : 1.0f);
    });
}

}  // namespace
}  // namespace paceline::comm

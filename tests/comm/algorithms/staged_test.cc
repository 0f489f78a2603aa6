// Collectives through slots in shared memory: bits, rounds and bytes of each; slots that are used again and
// again while some process is late; one that does not come.

#include "comm/algorithms/staged.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <thread>
#include <vector>

#include "base/buffer.h"
#include "base/rng.h"
#include "comm/values.h"

namespace paceline::comm {
namespace {

using ::testing::ElementsAre;

constexpr std::size_t kBlockBytes = 4096;
constexpr std::size_t kSlotFloats = kBlockBytes / sizeof(float);
constexpr float kNoValue = std::numeric_limits<float>::quiet_NaN();

const Staged::KeepWaiting kForEver = [] { return true; };

/// Processes as threads over one room; parameter: how many.
class StagedOf : public ::testing::TestWithParam<int> {
 protected:
  using Body = std::function<void(int process, Staged& staged)>;
  void on_each(const Body& body) const {
    base::Buffer room(Staged::room(GetParam(), kBlockBytes));
    std::ranges::fill(room.as<std::byte>(), std::byte{});
    std::vector<std::thread> threads;
    for (int process = 0; process < GetParam(); ++process)
      threads.emplace_back([&, process] {
        Staged staged(room.as<std::byte>(), process, GetParam(), kBlockBytes, {.looks = 50, .yields = 50});
        body(process, staged);
      });
    for (auto& thread : threads) thread.join();
  }
  [[nodiscard]] std::int64_t others() const { return GetParam() - 1; }
};

TEST_P(StagedOf, AllReduceGivesTheTreesBitsInPlaceAndApart) {
  on_each([&](int process, Staged& staged) {
    for (const std::size_t count :
         {std::size_t{0}, std::size_t{1}, kSlotFloats, kSlotFloats + 1, std::size_t{4099}, 9 * kSlotFloats}) {
      const auto expected = tree_of(GetParam(), count), given = values_of(process, count);
      auto values = given;
      EXPECT_TRUE(staged.all_reduce(values, values, kForEver));
      EXPECT_TRUE(same_bits(values, expected)) << count << " in place, process " << process;
      std::vector<float> apart(count, kNoValue);
      values = given;
      EXPECT_TRUE(staged.all_reduce(values, apart, kForEver));
      EXPECT_TRUE(same_bits(apart, expected)) << count << " apart, process " << process;
      EXPECT_TRUE(same_bits(values, given));
    }
  });
}

TEST_P(StagedOf, CountsTheRoundsAndBytesOfItsFormula) {
  constexpr std::size_t kCount = 5 * kSlotFloats;
  constexpr auto kBytes = static_cast<std::int64_t>(kCount * sizeof(float));
  std::atomic<std::int64_t> sent{0}, received{0};
  on_each([&](int, Staged& staged) {
    std::vector<float> values(kCount, 1.0f);
    EXPECT_TRUE(staged.all_reduce(values, values, kForEver));
    EXPECT_EQ(staged.moved().steps, 5 + 2);
    sent += staged.moved().bytes_sent;
    received += staged.moved().bytes_received;
    EXPECT_TRUE(staged.all_reduce(std::span(values).first(7), std::span(values).first(7), kForEver));
    EXPECT_EQ(staged.moved().steps, 1);
    EXPECT_EQ(staged.moved().bytes_sent, 28);
    EXPECT_EQ(staged.moved().bytes_received, others() * 28);
  });
  // Of all together: each gives (P-1)/P X and lays its sum, X/P, once for all; each reads 2 (P-1)/P X.
  EXPECT_EQ(sent, others() * kBytes + kBytes);
  EXPECT_EQ(received, 2 * others() * kBytes);
}

TEST_P(StagedOf, ReduceScatterGivesEachItsPartOfTheSum) {
  on_each([&](int process, Staged& staged) {
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1009}, 3 * kSlotFloats}) {
      const std::size_t all = count * static_cast<std::size_t>(GetParam());
      const auto expected = tree_of(GetParam(), all);
      const auto begin = static_cast<std::ptrdiff_t>(count) * process;
      const std::vector<float> want(expected.begin() + begin,
                                    expected.begin() + begin + static_cast<std::ptrdiff_t>(count));
      auto values = values_of(process, all);
      std::vector<float> apart(count, kNoValue);
      EXPECT_TRUE(staged.reduce_scatter(values, apart, kForEver));
      EXPECT_TRUE(same_bits(apart, want)) << count << " apart, process " << process;
      EXPECT_TRUE(same_bits(values, values_of(process, all)));
      const auto place = std::span(values).subspan(static_cast<std::size_t>(begin), count);
      EXPECT_TRUE(staged.reduce_scatter(values, place, kForEver));
      EXPECT_TRUE(same_bits({place.begin(), place.end()}, want)) << count << " in place, process " << process;
    }
  });
}

TEST_P(StagedOf, AllGatherAndBroadcastCarryBytesOfAnyLength) {
  on_each([&](int process, Staged& staged) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{3}, kBlockBytes, 2 * kBlockBytes + 5}) {
      const std::vector<std::byte> mine(bytes, static_cast<std::byte>(process + 1));
      std::vector<std::byte> all(bytes * static_cast<std::size_t>(GetParam()));
      EXPECT_TRUE(staged.all_gather(mine, all, kForEver));
      for (std::size_t i = 0; i < all.size(); ++i)
        ASSERT_EQ(all[i], static_cast<std::byte>(i / bytes + 1)) << "process " << process;
      for (int root = 0; root < GetParam(); ++root) {
        std::vector<std::byte> one(bytes, static_cast<std::byte>(100 + process));
        EXPECT_TRUE(staged.broadcast(one, root, kForEver));
        EXPECT_EQ(one, std::vector<std::byte>(bytes, static_cast<std::byte>(100 + root)));
      }
    }
  });
}

TEST_P(StagedOf, NobodyLeavesABarrierBeforeAllHaveCome) {
  std::atomic<int> came{0};
  on_each([&](int process, Staged& staged) {
    for (int turn = 1; turn <= 20; ++turn) {
      if (process == turn % GetParam()) std::this_thread::sleep_for(std::chrono::microseconds(200));
      ++came;
      EXPECT_TRUE(staged.barrier(kForEver));
      EXPECT_GE(came, turn * GetParam());
      EXPECT_TRUE(staged.barrier(kForEver));  // nobody counts on before all have looked
    }
  });
}

/// All kinds follow one another over four slots, and each process is late at times: nothing is overwritten
/// before all have read it.
TEST_P(StagedOf, KindsFollowOneAnotherWhoeverIsLate) {
  on_each([&](int process, Staged& staged) {
    base::Rng same(7, base::Purpose::test, 1);
    base::Rng own(8, base::Purpose::test, static_cast<std::uint64_t>(process));
    for (int turn = 0; turn < 300; ++turn) {
      const auto kind = same.below(5);
      const std::size_t count = 1 + same.below(6 * kSlotFloats);
      const int root = static_cast<int>(same.below(static_cast<std::uint32_t>(GetParam())));
      if (own.below(10) == 0) std::this_thread::sleep_for(std::chrono::microseconds(own.below(200)));
      auto values = values_of(process, kind == 0 ? 1 + count % kSlotFloats : count);
      if (kind <= 1) {
        EXPECT_TRUE(staged.all_reduce(values, values, kForEver));
        ASSERT_TRUE(same_bits(values, tree_of(GetParam(), values.size()))) << turn;
      } else if (kind == 2) {
        EXPECT_TRUE(staged.broadcast(std::as_writable_bytes(std::span(values)), root, kForEver));
        ASSERT_TRUE(same_bits(values, values_of(root, count))) << turn;
      } else if (kind == 3) {
        std::vector<float> all(count * static_cast<std::size_t>(GetParam()), kNoValue);
        EXPECT_TRUE(staged.all_gather(std::as_bytes(std::span(values)),
                                      std::as_writable_bytes(std::span(all)), kForEver));
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(count) * root;
        ASSERT_TRUE(same_bits({begin, begin + static_cast<std::ptrdiff_t>(count)}, values_of(root, count)))
            << turn;
      } else {
        EXPECT_TRUE(staged.barrier(kForEver));
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Processes, StagedOf, ::testing::Values(1, 2, 3, 4, 7));

/// Blocks of memory that all processes reach: summed in place where the values lie alike, through slots where
/// they do not.
TEST_P(StagedOf, InCommonMemoryNothingIsCopiedWhereValuesLieAlike) {
  constexpr std::size_t kFloats = 6 * kSlotFloats;
  std::vector<SharedMemory> common;
  for (int process = 0; process < GetParam(); ++process) {
    auto memory = SharedMemory::create(2 * kFloats * sizeof(float));
    ASSERT_TRUE(memory) << "no room in /dev/shm";
    common.push_back(std::move(*memory));
  }
  on_each([&](int process, Staged& staged) {
    const auto memory = common[static_cast<std::size_t>(process)].bytes();
    const std::span floats(reinterpret_cast<float*>(memory.data()), 2 * kFloats);
    const auto at = [&](std::size_t place) {
      const auto values = floats.subspan(place, kFloats);
      std::ranges::copy(values_of(process, kFloats), values.begin());
      EXPECT_TRUE(staged.all_reduce(values, values, kForEver, common));
      EXPECT_TRUE(same_bits({values.begin(), values.end()}, tree_of(GetParam(), kFloats))) << place;
      EXPECT_TRUE(staged.barrier(kForEver));
    };
    const auto rounds_at = [&](std::span<float> values) {
      EXPECT_TRUE(staged.all_reduce(values, values, kForEver, common));
      const auto rounds = staged.moved().steps;
      EXPECT_TRUE(staged.barrier(kForEver));
      return rounds;
    };
    for (const std::size_t place : {std::size_t{0}, std::size_t{5}, kFloats}) at(place);
    at(static_cast<std::size_t>(process) * 16);
    EXPECT_EQ(rounds_at(floats.first(kFloats)), 2) << "where they lie, and the sum";
    if (GetParam() > 1) {
      EXPECT_EQ(rounds_at(floats.subspan(static_cast<std::size_t>(process) * 16, kFloats)), 1 + 6 + 2);
    }
    std::vector<float> apart(kFloats);
    EXPECT_EQ(rounds_at(apart), 1 + 6 + 2) << "none of them lies there";
  });
}

TEST(Staged, NamesWhoIsWaitedForWhenItShallWaitNoLonger) {
  constexpr int kProcesses = 3;
  for (const std::size_t count : {std::size_t{5}, 9 * kSlotFloats}) {
    base::Buffer room(Staged::room(kProcesses, kBlockBytes));
    std::ranges::fill(room.as<std::byte>(), std::byte{});
    std::vector<std::thread> threads;
    for (const int process : {0, 2})  // 1 does not come
      threads.emplace_back([&, process] {
        Staged staged(room.as<std::byte>(), process, kProcesses, kBlockBytes, {});
        int asked = 0;
        std::vector<float> values(count, 1.0f);
        // Long enough for the other one to have given what it can.
        EXPECT_FALSE(staged.all_reduce(values, values, [&] { return ++asked < 15; }));
        EXPECT_EQ(asked, 15);
        EXPECT_THAT(staged.missing(), ElementsAre(1)) << "process " << process << ", " << count;
      });
    for (auto& thread : threads) thread.join();
  }
}

TEST(StagedDeathTest, RefusesARoomThatIsTooSmallAndBlocksThatSplitALine) {
  base::Buffer room(Staged::room(2, kBlockBytes));
  const auto bytes = room.as<std::byte>();
  EXPECT_DEATH((void)Staged(bytes.first(bytes.size() - 64), 0, 2, kBlockBytes, {}), "large enough");
  EXPECT_DEATH((void)Staged(bytes, 0, 2, kBlockBytes - 32, {}), "block_bytes % 64");
}

}  // namespace
}  // namespace paceline::comm

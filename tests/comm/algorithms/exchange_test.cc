// Collectives by messages: bits, rounds and bytes of each, over a network that is strict about sizes.

#include "comm/algorithms/exchange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/dtype.h"
#include "comm/fake_wire.h"
#include "comm/values.h"

namespace paceline::comm {
namespace {

constexpr std::size_t kBlockFloats = kExchangeBlock / sizeof(float);
constexpr std::size_t kSmallFloats = kExchangeSmall / sizeof(float);
/// Around the limits: of a small message, of a block, and a last block that has nothing for most.
constexpr std::size_t kCountsOfExchange[] = {0,
                                             1,
                                             17,
                                             kSmallFloats,
                                             kSmallFloats + 1,
                                             kBlockFloats - 1,
                                             kBlockFloats,
                                             kBlockFloats + 1,
                                             2 * kBlockFloats + 4099};

/// Processes as threads; parameter: how many.
class ExchangeOf : public ::testing::TestWithParam<int> {
 protected:
  using Body = std::function<void(int process, const Round& round)>;
  void on_each(const Body& body) const {
    const auto network = std::make_shared<FakeNetwork>(GetParam());
    std::vector<std::thread> threads;
    for (int process = 0; process < GetParam(); ++process)
      threads.emplace_back([&, process] {
        FakeWire wire(network, process);
        body(process, [&](std::span<const Send> sends, std::span<const Receive> receives) {
          const auto late = wire.swap(Channel::reductions, sends, receives, [] { return true; });
          EXPECT_TRUE(late.empty());
        });
      });
    for (auto& thread : threads) thread.join();
  }
  [[nodiscard]] std::int64_t others() const { return GetParam() - 1; }
};

TEST_P(ExchangeOf, AllReduceGivesTheTreesBitsInPlaceAndApart) {
  on_each([&](int process, const Round& round) {
    ExchangeRoom room;  // the same for all: it grows, and holds what was there before
    for (const std::size_t count : kCountsOfExchange) {
      const auto expected = tree_of(GetParam(), count), given = values_of(process, count);
      auto values = given;
      (void)exchange_all_reduce(values, values, process, GetParam(), room, round);
      EXPECT_TRUE(same_bits(values, expected)) << count << " in place, process " << process;
      std::vector<float> apart(count, std::numeric_limits<float>::quiet_NaN());
      values = given;
      (void)exchange_all_reduce(values, apart, process, GetParam(), room, round);
      EXPECT_TRUE(same_bits(apart, expected)) << count << " apart, process " << process;
      EXPECT_TRUE(same_bits(values, given));
    }
  });
}

TEST_P(ExchangeOf, AllReduceCountsTheRoundsAndBytesOfItsFormula) {
  for (const std::size_t count : {std::size_t{1000}, 2 * kBlockFloats + 4096}) {
    const bool is_small = count <= kSmallFloats;
    const auto bytes = static_cast<std::int64_t>(count * sizeof(float));
    for (const WireFormat format : {WireFormat::fp32, WireFormat::bf16}) {
      std::vector<Traffic> moved(static_cast<std::size_t>(GetParam()));
      on_each([&](int process, const Round& round) {
        ExchangeRoom room;
        std::vector<float> values(count, 1.0f);
        auto& mine = moved[static_cast<std::size_t>(process)];
        mine = exchange_all_reduce(values, values, process, GetParam(), room, round, format);
      });
      std::int64_t sent = 0, received = 0;
      for (const auto& one : moved) {
        EXPECT_EQ(one.steps, GetParam() == 1 ? 0 : is_small ? 1 : 3 + 1);
        sent += one.bytes_sent;
        received += one.bytes_received;
      }
      // Of all processes together: P (P-1) X where it is small, else 2 (P-1) X, or half of that.
      const bool is_halved = format == WireFormat::bf16 && !is_small;
      EXPECT_EQ(sent, others() * bytes * (is_small ? GetParam() : is_halved ? 1 : 2));
      EXPECT_EQ(received, sent);
    }
  }
}

/// A part is rounded once, the sum once: of two processes that can be worked out number by number.
TEST_P(ExchangeOf, AsBf16RoundsPartsAndSumAndEndsWithTheSameBitsEverywhere) {
  const auto rounded = [](float value) { return base::to_float(base::to_bf16(value)); };
  for (const std::size_t count : {kSmallFloats + 1, 2 * kBlockFloats + 4099}) {
    std::vector<std::vector<float>> results(static_cast<std::size_t>(GetParam()));
    on_each([&](int process, const Round& round) {
      ExchangeRoom room;
      auto& values = results[static_cast<std::size_t>(process)];
      values = values_of(process, count);
      (void)exchange_all_reduce(values, values, process, GetParam(), room, round, WireFormat::bf16);
    });
    for (const auto& result : results) EXPECT_TRUE(same_bits(result, results[0])) << count;
    if (GetParam() != 2) continue;
    const auto a = values_of(0, count), b = values_of(1, count);
    for (std::size_t i = 0; i < count; ++i) {
      // Who owns the number adds its own part as it is.
      const float owned_by_a = rounded(a[i] + rounded(b[i])), owned_by_b = rounded(rounded(a[i]) + b[i]);
      ASSERT_TRUE(results[0][i] == owned_by_a || results[0][i] == owned_by_b) << i;
    }
  }
}

TEST_P(ExchangeOf, SmallOnesTravelAsFloatsInAnyFormat) {
  on_each([&](int process, const Round& round) {
    ExchangeRoom room;
    auto values = values_of(process, kSmallFloats);
    (void)exchange_all_reduce(values, values, process, GetParam(), room, round, WireFormat::bf16);
    EXPECT_TRUE(same_bits(values, tree_of(GetParam(), kSmallFloats)));
  });
}

TEST_P(ExchangeOf, ReduceScatterGivesEachItsPartOfTheSum) {
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1009}, kBlockFloats + 3}) {
    const std::size_t all = count * static_cast<std::size_t>(GetParam());
    const auto expected = tree_of(GetParam(), all);
    on_each([&](int process, const Round& round) {
      ExchangeRoom room;
      const auto begin = static_cast<std::ptrdiff_t>(count) * process;
      const std::vector<float> want(expected.begin() + begin,
                                    expected.begin() + begin + static_cast<std::ptrdiff_t>(count));
      auto values = values_of(process, all);
      std::vector<float> apart(count, std::numeric_limits<float>::quiet_NaN());
      const Traffic moved = exchange_reduce_scatter(values, apart, process, GetParam(), room, round);
      EXPECT_TRUE(same_bits(apart, want)) << count << " apart, process " << process;
      EXPECT_TRUE(same_bits(values, values_of(process, all)));
      EXPECT_EQ(moved.bytes_sent, others() * static_cast<std::int64_t>(count * sizeof(float)));
      EXPECT_EQ(moved.bytes_received, moved.bytes_sent);
      const auto place = std::span(values).subspan(static_cast<std::size_t>(begin), count);
      (void)exchange_reduce_scatter(values, place, process, GetParam(), room, round);
      EXPECT_TRUE(same_bits({place.begin(), place.end()}, want)) << count << " in place, process " << process;
    });
  }
}

TEST_P(ExchangeOf, AllGatherKeepsTheOrderOfProcesses) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{4099}}) {
    on_each([&](int process, const Round& round) {
      const std::vector<std::byte> mine(bytes, static_cast<std::byte>(process + 1));
      std::vector<std::byte> all(bytes * static_cast<std::size_t>(GetParam()));
      const Traffic moved = exchange_all_gather(mine, all, process, GetParam(), round);
      EXPECT_EQ(moved.bytes_sent, others() * static_cast<std::int64_t>(bytes));
      EXPECT_EQ(moved.steps, bytes == 0 || others() == 0 ? 0 : 1);
      for (std::size_t i = 0; i < all.size(); ++i)
        ASSERT_EQ(all[i], static_cast<std::byte>(i / bytes + 1)) << "process " << process;
      auto again = all;
      const auto own = std::span(again).subspan(bytes * static_cast<std::size_t>(process), bytes);
      (void)exchange_all_gather(own, again, process, GetParam(), round);
      EXPECT_EQ(again, all) << "from its own place";
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Processes, ExchangeOf, ::testing::Values(1, 2, 3, 4, 7));

TEST(Exchange, PassesOnTheErrorOfARound) {
  for (const std::size_t count : {std::size_t{5}, 3 * kBlockFloats}) {
    int rounds = 0;
    const Round fails = [&](std::span<const Send>, std::span<const Receive> receives) {
      for (const auto& one : receives) std::ranges::fill(one.bytes, std::byte{});
      if (++rounds == (count > kSmallFloats ? 2 : 1)) throw std::runtime_error("the network is down");
    };
    ExchangeRoom room;
    std::vector<float> values(count, 1.0f);
    EXPECT_THROW((void)exchange_all_reduce(values, values, 0, 2, room, fails), std::runtime_error);
    EXPECT_EQ(rounds, count > kSmallFloats ? 2 : 1) << "none follows the one that failed";
  }
}

TEST(Exchange, RoomGrowsToTheLargestCallAndStays) {
  ExchangeRoom room;
  const auto large = room.take(3, 1000);
  EXPECT_EQ(large.size(), 3000u);
  const auto small = room.take(2, 10);
  EXPECT_EQ(small.size(), 20u);
  EXPECT_EQ(small.data(), large.data());
}

}  // namespace
}  // namespace paceline::comm

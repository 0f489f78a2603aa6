/// Collectives between processes: what they sum, in what order, by how many bytes.

#include <gtest/gtest.h>

#include <atomic>

#include "comm/on_processes.h"
#include "comm/values.h"

namespace paceline::comm {
namespace {

/// Processes, ranks of each, and whether they share memory or send messages.
class Hierarchy : public ::testing::TestWithParam<std::tuple<int, int, bool>> {};

TEST_P(Hierarchy, EveryCollectiveIsThatOfAsManyWorkersInOneProcess) {
  const auto [processes, each, shared] = GetParam();
  const int world = processes * each;
  // Whole groups are subtrees only when they hold a power of two of ranks.
  const bool same_tree = processes == 1 || (each & (each - 1)) == 0;
  const auto outcome =
      on_processes(processes, each, {.shared_memory = shared, .block_bytes = 16384}, [&](Communicator& comm) {
        if (processes > 1) {
          EXPECT_NE(comm.algorithm().find(shared ? "staged" : "messages"), std::string::npos);
        }
        EXPECT_EQ(comm.size(), world);
        for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{17}, std::size_t{2049},
                                        std::size_t{4099}, std::size_t{600011}}) {
          auto values = values_of(comm.rank(), count);
          comm.all_reduce(values)->wait();
          const auto expected = tree_of(world, count);
          if (same_tree) {
            EXPECT_TRUE(same_bits(values, expected)) << count << " on rank " << comm.rank();
          } else {
            for (std::size_t i = 0; i < count; ++i) ASSERT_NEAR(values[i], expected[i], 1.0);
          }
          const auto given = values_of(comm.rank(), count);
          std::vector<float> apart(count);
          comm.all_reduce(given, apart)->wait();
          EXPECT_TRUE(same_bits(apart, values)) << count << " out of place on rank " << comm.rank();
          EXPECT_TRUE(same_bits(given, values_of(comm.rank(), count)));
        }
        for (const std::size_t count :
             {std::size_t{0}, std::size_t{1}, std::size_t{1009}, std::size_t{200003}}) {
          const std::size_t all = count * static_cast<std::size_t>(world);
          auto sums = values_of(comm.rank(), all), values = sums;
          comm.all_reduce(sums)->wait();
          const auto begin = static_cast<std::ptrdiff_t>(comm.rank()) * static_cast<std::ptrdiff_t>(count);
          const std::vector<float> mine(sums.begin() + begin,
                                        sums.begin() + begin + static_cast<std::ptrdiff_t>(count));
          std::vector<float> apart(count);
          comm.reduce_scatter(values, apart)->wait();
          EXPECT_TRUE(same_bits(apart, mine)) << count << " scattered on rank " << comm.rank();
          const auto place = std::span(values).subspan(static_cast<std::size_t>(begin), count);
          comm.reduce_scatter(values, place)->wait();
          EXPECT_TRUE(same_bits({place.begin(), place.end()}, mine))
              << count << " in place on rank " << comm.rank();
        }
        std::vector<double> numbers{1.0 * comm.rank(), -1.0 * comm.rank(), 0.5};
        auto least = numbers, most = numbers;
        comm.all_reduce(numbers, Reduce::sum);
        EXPECT_EQ(numbers,
                  (std::vector<double>{world * (world - 1) / 2.0, -world * (world - 1) / 2.0, 0.5 * world}));
        comm.all_reduce(least, Reduce::min);
        EXPECT_EQ(least[1], -(world - 1));
        comm.all_reduce(most, Reduce::max);
        EXPECT_EQ(most[0], world - 1);
        for (int root = 0; root < world; ++root) {
          std::vector<int> block(5, comm.rank());
          comm.broadcast(std::as_writable_bytes(std::span(block)), root);
          EXPECT_EQ(block, std::vector<int>(5, root));
        }
        const std::array<int, 2> mine{comm.rank(), 100 + comm.rank()};
        std::vector<int> all(2 * static_cast<std::size_t>(world));
        comm.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
        for (int rank = 0; rank < world; ++rank) {
          EXPECT_EQ(all[2 * static_cast<std::size_t>(rank)], rank);
          EXPECT_EQ(all[2 * static_cast<std::size_t>(rank) + 1], 100 + rank);
        }
        comm.barrier();
      });
  for (const auto& error : outcome.errors) EXPECT_EQ(error, "");
}

/// The bits are those of memory apart, wherever in it the values lie, and also where they do not lie alike.
TEST_P(Hierarchy, SumsInMemoryThatItGaveAreTheSame) {
  const auto [processes, each, shared] = GetParam();
  const bool is_direct = shared && processes > 1;
  const auto outcome =
      on_processes(processes, each, {.shared_memory = shared, .block_bytes = 16384}, [&](Communicator& comm) {
        constexpr std::size_t kFloats = 300'000;
        base::Buffer earlier = comm.memory(kFloats * sizeof(float));
        base::Buffer memory = comm.memory(kFloats * sizeof(float));
        if (processes > 1) {
          const auto* const expected = is_direct ? "direct (memory of the host)" : "messages";
          EXPECT_NE(comm.algorithm().find(expected), std::string::npos);
        }
        const auto sum_at = [&](base::Buffer& buffer, std::size_t place, std::size_t count) {
          const auto values = buffer.as<float>().subspan(place, count);
          std::ranges::copy(values_of(comm.rank(), count), values.begin());
          const Traffic before = comm.traffic();
          comm.all_reduce(values)->wait();
          auto apart = values_of(comm.rank(), count);
          const auto moved = comm.traffic().bytes_sent - before.bytes_sent;
          comm.all_reduce(apart)->wait();
          EXPECT_TRUE(same_bits({values.begin(), values.end()}, apart))
              << count << " at " << place << " on rank " << comm.rank();
          return moved;
        };
        for (const std::size_t place : {std::size_t{0}, std::size_t{5}, std::size_t{100'016}})
          for (const std::size_t count : {std::size_t{1}, std::size_t{2049}, std::size_t{199'984}})
            (void)sum_at(memory, place, count);
        const std::int64_t whole = sum_at(memory, 0, kFloats);
        const double share = static_cast<double>(whole) / (1.0 * kFloats * sizeof(float));
        if (is_direct && each == 1) {
          EXPECT_NEAR(share, (processes - 1.0) / processes, 0.01) << "copied on the way";
        }
        (void)sum_at(memory, static_cast<std::size_t>(comm.rank()) * 64, 100'000);  // not alike
        (void)sum_at(comm.rank() == 0 ? memory : earlier, 0, 100'000);              // not in all of them
        (void)sum_at(earlier, 0, 100'000);
        (void)sum_at(memory, 64, 100'000);
        const auto given = values_of(comm.rank(), 50'000);  // to the memory, from apart
        auto sums = given;
        comm.all_reduce(sums)->wait();
        const auto target = memory.as<float>().first(50'000);
        comm.all_reduce(given, target)->wait();
        EXPECT_TRUE(same_bits({target.begin(), target.end()}, sums));
        EXPECT_TRUE(same_bits(given, values_of(comm.rank(), 50'000)));
        comm.barrier();
        memory = comm.memory(0);  // some may be through, and free theirs, while others still use it
        earlier = {};
      });
  for (const auto& error : outcome.errors) EXPECT_EQ(error, "");
}

INSTANTIATE_TEST_SUITE_P(Messages, Hierarchy,
                         ::testing::Values(std::tuple{1, 1, false}, std::tuple{2, 1, false},
                                           std::tuple{3, 1, false}, std::tuple{4, 1, false},
                                           std::tuple{1, 2, false}, std::tuple{2, 2, false},
                                           std::tuple{3, 2, false}, std::tuple{2, 3, false},
                                           std::tuple{3, 4, false}));
INSTANTIATE_TEST_SUITE_P(SharedMemory, Hierarchy,
                         ::testing::Values(std::tuple{2, 1, true}, std::tuple{3, 1, true},
                                           std::tuple{4, 1, true}, std::tuple{7, 1, true},
                                           std::tuple{2, 2, true}, std::tuple{3, 4, true}));

/// Each kind leaves the slots to the next: any may follow any, and everybody is at times the last to come.
TEST(ProcessGroup, ReductionsOfAllKindsFollowOneAnother) {
  for (const int processes : {2, 3, 7}) {
    const auto outcome = on_processes(processes, 1, {.block_bytes = 4096}, [&](Communicator& comm) {
      base::Buffer memory = comm.memory(40'000 * sizeof(float));
      base::Rng same(7, base::Purpose::test, 0);
      base::Rng own(8, base::Purpose::test, static_cast<std::uint64_t>(comm.rank()));
      for (int turn = 0; turn < 150; ++turn) {
        const auto kind = same.below(5);
        const std::size_t count = 1 + (kind == 0 ? same.below(1024) : 1024 + same.below(30'000));
        std::size_t place = same.below(8'000);
        if (kind == 1) place = static_cast<std::size_t>(comm.rank()) * 16;  // not alike
        const auto given = values_of(comm.rank(), count);
        if (own.below(20) == 0) std::this_thread::sleep_for(std::chrono::microseconds(own.below(300)));
        if (kind == 4) {
          const std::size_t part = count / static_cast<std::size_t>(processes);
          const auto whole = std::span(given).first(part * static_cast<std::size_t>(processes));
          std::vector<float> mine(part);
          comm.reduce_scatter(whole, mine)->wait();
          auto sums = std::vector<float>(whole.begin(), whole.end());
          comm.all_reduce(sums)->wait();
          const auto begin = sums.begin() + static_cast<std::ptrdiff_t>(part) * comm.rank();
          ASSERT_TRUE(same_bits(mine, {begin, begin + static_cast<std::ptrdiff_t>(part)})) << turn;
          continue;
        }
        std::vector<float> apart;
        if (kind == 2) apart = given;
        const auto values = kind == 2 ? std::span(apart) : memory.as<float>().subspan(place, count);
        std::ranges::copy(given, values.begin());
        comm.all_reduce(values)->wait();
        ASSERT_TRUE(same_bits({values.begin(), values.end()}, tree_of(processes, count)))
            << "kind " << kind << " in turn " << turn << " on rank " << comm.rank();
        std::ranges::fill(values, 1.0f);  // nobody writes here any more
        if (own.below(20) == 0) std::this_thread::sleep_for(std::chrono::microseconds(own.below(300)));
        EXPECT_TRUE(std::ranges::all_of(values, [](float value) { return value == 1.0f; })) << turn;
      }
    });
    for (const auto& error : outcome.errors) EXPECT_EQ(error, "");
  }
}

TEST(ProcessGroup, SeveralReductionsAreUnderWayAndKeepTheirOrder) {
  const std::vector<std::size_t> counts{300007, 1, 0, 4096, 12};
  const auto outcome = on_processes(3, 2, {}, [&](Communicator& comm) {
    for (int round = 0; round < 3; ++round) {
      std::vector<std::vector<float>> buckets;
      std::vector<std::unique_ptr<Pending>> pending;
      for (const auto count : counts) buckets.push_back(values_of(comm.rank(), count));
      for (auto& bucket : buckets) pending.push_back(comm.all_reduce(bucket));
      double one = 1;
      comm.all_reduce(std::span(&one, 1), Reduce::sum);  // an exchange beside them
      EXPECT_EQ(one, 6);
      for (std::size_t b = counts.size(); b-- > 0;) pending[b]->wait();
      for (std::size_t b = 0; b < counts.size(); ++b) {
        EXPECT_TRUE(same_bits(buckets[b], tree_of(6, counts[b])));
        if (b > 0) {
          EXPECT_LE(pending[b - 1]->timing().done, pending[b]->timing().done);
        }
      }
    }
  });
  for (const auto& error : outcome.errors) EXPECT_EQ(error, "");
}

TEST(ProcessGroup, CountsWhatGoesBetweenThemOnceAProcess) {
  constexpr std::size_t kCount = 1 << 20;
  for (const bool shared : {false, true}) {
    std::atomic<std::int64_t> sent{0}, received{0};
    const auto outcome = on_processes(4, 1, {.shared_memory = shared}, [&](Communicator& comm) {
      const auto before = comm.traffic();  // the start has its own
      std::vector<float> values(kCount, 1.0f);
      comm.all_reduce(values)->wait();
      sent += comm.traffic().bytes_sent - before.bytes_sent;
      received += comm.traffic().bytes_received - before.bytes_received;
      EXPECT_EQ(comm.traffic().collectives, 1);
    });
    EXPECT_EQ(outcome.errors, std::vector<std::string>(4));
    // Each 2 (P-1)/P X; a sum in shared memory is written once for all: (P-1)/P X + X/P.
    const auto x = static_cast<std::int64_t>(kCount * sizeof(float));
    EXPECT_EQ(sent, shared ? 4 * x : 2 * 3 * x);
    EXPECT_EQ(received, 2 * 3 * x);
  }
}

TEST(ProcessGroup, CountTheRoundOfTheAgreementOnAPlace) {
  const auto outcome = on_processes(2, 1, {.block_bytes = 16384}, [&](Communicator& comm) {
    std::vector<float> apart(20'000);  // five blocks
    const auto rounds_of = [&](std::span<float> values) {
      const auto before = comm.traffic().steps;
      comm.all_reduce(values)->wait();
      return comm.traffic().steps - before;
    };
    EXPECT_EQ(rounds_of(apart), 5 + 2);
    base::Buffer memory = comm.memory(apart.size() * sizeof(float));
    EXPECT_EQ(rounds_of(memory.as<float>()), 2);
    EXPECT_EQ(rounds_of(apart), 1 + 5 + 2);
  });
  EXPECT_EQ(outcome.errors, std::vector<std::string>(2));
}

TEST(ProcessGroup, AsBf16HalfTheBytesMoveAndAllEndWithTheSameBits) {
  for (const int processes : {2, 3, 4}) {
    for (const std::size_t count : {std::size_t{2049}, std::size_t{600011}}) {
      std::vector<std::vector<float>> results(static_cast<std::size_t>(processes));
      std::atomic<std::int64_t> sent{0};
      const auto outcome =
          on_processes(processes, 1, {.wire_format = WireFormat::bf16}, [&](Communicator& comm) {
            auto values = values_of(comm.rank(), count);
            const auto before = comm.traffic().bytes_sent;
            comm.all_reduce(values)->wait();
            sent += comm.traffic().bytes_sent - before;
            results[static_cast<std::size_t>(comm.rank())] = values;
          });
      EXPECT_EQ(outcome.errors, std::vector<std::string>(static_cast<std::size_t>(processes)));
      EXPECT_EQ(sent, static_cast<std::int64_t>(2 * (processes - 1) * count * 2));
      const auto expected = tree_of(processes, count);
      std::vector<float> sizes(count);  // of what was rounded: the parts and their sum, each within 1/256
      for (int rank = 0; rank < processes; ++rank) {
        const auto part = values_of(rank, count);
        for (std::size_t i = 0; i < count; ++i) sizes[i] += std::abs(part[i]);
      }
      for (const auto& result : results) {
        EXPECT_TRUE(same_bits(result, results[0]));
        for (std::size_t i = 0; i < count; ++i)
          ASSERT_NEAR(result[i], expected[i], sizes[i] * 2 / 256) << processes << ", " << i;
      }
    }
  }
}

/// A small reduction with nothing before it is left to whoever waits, and one behind it takes it along.
TEST(ProcessGroup, WhatIsLeftToTheWaiterIsDoneInItsPlace) {
  const auto outcome = on_processes(2, 1, {}, [&](Communicator& comm) {
    for (const std::size_t behind : {std::size_t{0}, std::size_t{1}, std::size_t{300007}}) {
      auto first = values_of(comm.rank(), 12);
      auto second = values_of(comm.rank(), behind);
      auto pending = comm.all_reduce(first);
      auto next = comm.all_reduce(second);
      double one = 1;
      comm.all_reduce(std::span(&one, 1), Reduce::sum);
      EXPECT_EQ(one, 2);
      next->wait();
      EXPECT_TRUE(pending->complete());
      pending->wait();
      EXPECT_TRUE(same_bits(first, tree_of(2, 12)));
      EXPECT_TRUE(same_bits(second, tree_of(2, behind)));
      EXPECT_LE(pending->timing().posted, pending->timing().done);
      EXPECT_LE(pending->timing().done, next->timing().done);
    }
  });
  for (const auto& error : outcome.errors) EXPECT_EQ(error, "");
}

/// What a study does between its cells: some processes work, the others hear when it goes on.
TEST(ProcessGroup, AreRegroupedAndHearOrdersMeanwhile) {
  const std::vector<std::vector<int>> cells{{0, 1}, {0}, {0, 1, 2, 3}, {0, 2}, {0, 1, 3}};
  for (const bool shared : {false, true}) {
    const auto network = std::make_shared<FakeNetwork>(4);
    std::atomic<int> sums{0};
    const auto run = [&](int process) {
      FakeWire wire(network, process);
      ProcessGroup joined(wire, {.shared_memory = shared}, {});
      for (int cell = 0; cell < static_cast<int>(cells.size()); ++cell) {
        int heard = process == 0 ? cell : -1;
        joined.order(std::as_writable_bytes(std::span(&heard, 1)));
        EXPECT_EQ(heard, cell);
        const auto& members = cells[static_cast<std::size_t>(cell)];
        // A process without work gives the highest number in turn, and all hear it.
        EXPECT_EQ(joined.regroup(members, process == cell % 4 ? 15 : process % 2), 15);
        EXPECT_EQ(joined.highest(process == 3 - cell % 4 ? 2 : 0), 2);
        const auto place = std::ranges::find(members, process) - members.begin();
        const int count = static_cast<int>(members.size());
        if (place == count) continue;
        EXPECT_EQ(joined.process(), place);
        EXPECT_EQ(joined.processes(), count);
        if (count > 1) {
          EXPECT_EQ(joined.algorithm().find("messages") == std::string::npos, shared);
        }
        auto communicators = make_local(1, {.across = &joined});
        EXPECT_EQ(communicators[0]->rank(), place);
        std::vector<float> values(50'000, 1.0f);
        communicators[0]->all_reduce(values)->wait();
        communicators[0]->barrier();
        EXPECT_EQ(values, std::vector<float>(50'000, static_cast<float>(count)));
        base::Buffer memory = communicators[0]->memory(values.size() * sizeof(float));
        const auto common = memory.as<float>();
        std::ranges::fill(common, 1.0f);
        communicators[0]->all_reduce(common)->wait();
        communicators[0]->barrier();
        EXPECT_TRUE(std::ranges::equal(common, values));
        int last = static_cast<int>(place) == count - 1 ? 10 * cell : -1;
        communicators[0]->broadcast(std::as_writable_bytes(std::span(&last, 1)), count - 1);
        EXPECT_EQ(last, 10 * cell) << "from the last member, whatever its number in the run";
        std::vector<int> all(members.size());
        communicators[0]->all_gather(std::as_bytes(std::span(&process, 1)),
                                     std::as_writable_bytes(std::span(all)));
        EXPECT_EQ(all, members);
        ++sums;
      }
    };
    std::vector<std::thread> threads;
    for (int process = 0; process < 4; ++process) threads.emplace_back(run, process);
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(sums, 2 + 1 + 4 + 2 + 3);
  }
}

}  // namespace
}  // namespace paceline::comm

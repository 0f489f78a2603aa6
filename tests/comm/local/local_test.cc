#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <optional>

#include "base/error.h"
#include "base/summation_tree.h"
#include "comm/local/group.h"
#include "comm/ranks.h"
#include "comm/values.h"

namespace paceline::comm {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

const LocalOptions kOptions{};

/// What every rank must end with, bit for bit: the tree's sum, from its definition.
std::vector<float> expected_sum(int ranks, std::size_t count) {
  std::vector<std::vector<float>> inputs;
  for (int rank = 0; rank < ranks; ++rank) inputs.push_back(values_of(rank, count));
  std::vector<float> sum(count), column(static_cast<std::size_t>(ranks));
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t r = 0; r < column.size(); ++r) column[r] = inputs[r][i];
    sum[i] = base::tree_fold<float>(column, [](float a, float b) { return a + b; });
  }
  return sum;
}

class AllReduce : public ::testing::TestWithParam<std::tuple<int, std::size_t>> {};

TEST_P(AllReduce, GivesEveryRankTheBitsOfTheTree) {
  const auto [ranks, count] = GetParam();
  const auto expected = expected_sum(ranks, count);
  const auto errors = on_ranks(ranks, kOptions, [&, count = count](Communicator& comm) {
    for (int again = 0; again < 3; ++again) {
      auto values = values_of(comm.rank(), count);
      comm.all_reduce(values)->wait();
      EXPECT_TRUE(same_bits(values, expected)) << "rank " << comm.rank();
    }
  });
  EXPECT_THAT(errors, Each(""));
}

TEST_P(AllReduce, OutOfPlaceLeavesWhatWasGiven) {
  const auto [ranks, count] = GetParam();
  const auto expected = expected_sum(ranks, count);
  const auto errors = on_ranks(ranks, kOptions, [&, count = count](Communicator& comm) {
    const auto given = values_of(comm.rank(), count);
    std::vector<float> sums(count, -7.0f);
    comm.all_reduce(given, sums)->wait();
    EXPECT_TRUE(same_bits(sums, expected)) << "rank " << comm.rank();
    EXPECT_TRUE(same_bits(given, values_of(comm.rank(), count)));
  });
  EXPECT_THAT(errors, Each(""));
}

TEST_P(AllReduce, ScatteredEveryRankGetsItsPartOfTheTreesSum) {
  const auto [ranks, count] = GetParam();
  const auto expected = expected_sum(ranks, count * static_cast<std::size_t>(ranks));
  const auto errors = on_ranks(ranks, kOptions, [&, ranks = ranks, count = count](Communicator& comm) {
    const std::size_t all = count * static_cast<std::size_t>(ranks);
    auto values = values_of(comm.rank(), all);
    const auto begin = static_cast<std::size_t>(comm.rank()) * count;
    const std::vector<float> mine(expected.begin() + static_cast<std::ptrdiff_t>(begin),
                                  expected.begin() + static_cast<std::ptrdiff_t>(begin + count));
    std::vector<float> apart(count);
    comm.reduce_scatter(values, apart)->wait();
    EXPECT_TRUE(same_bits(apart, mine)) << "rank " << comm.rank();
    EXPECT_TRUE(same_bits(values, values_of(comm.rank(), all)));
    const auto place = std::span(values).subspan(begin, count);
    comm.reduce_scatter(values, place)->wait();  // in place, and another under way behind it
    EXPECT_TRUE(same_bits({place.begin(), place.end()}, mine)) << "rank " << comm.rank();
    if (ranks > 1) {
      EXPECT_EQ(comm.traffic().bytes_received,
                2 * static_cast<std::int64_t>(count * sizeof(float)) * (ranks - 1));
    }
  });
  EXPECT_THAT(errors, Each(""));
}

TEST_P(AllReduce, LeavesTheNeighbourhoodOfTheBufferAlone) {
  const auto [ranks, count] = GetParam();
  const auto errors = on_ranks(ranks, kOptions, [&, count = count](Communicator& comm) {
    std::vector<float> memory(count + 2, -7.0f);
    comm.all_reduce(std::span(memory).subspan(1, count))->wait();  // also: not aligned to anything
    EXPECT_EQ(memory.front(), -7.0f);
    EXPECT_EQ(memory.back(), -7.0f);
    for (std::size_t i = 1; i <= count; ++i) ASSERT_EQ(memory[i], -7.0f * static_cast<float>(comm.size()));
  });
  EXPECT_THAT(errors, Each(""));
}

TEST_P(AllReduce, CountsTheBytesThatWereMoved) {
  const auto [ranks, count] = GetParam();
  std::atomic<std::int64_t> sent{0}, received{0};
  const auto errors = on_ranks(ranks, kOptions, [&, count = count](Communicator& comm) {
    auto values = values_of(comm.rank(), count);
    comm.all_reduce(values)->wait();
    EXPECT_EQ(comm.traffic().collectives, 1);
    sent += comm.traffic().bytes_sent;
    received += comm.traffic().bytes_received;
  });
  EXPECT_THAT(errors, Each(""));
  // Over all ranks: every element is read from and written to N - 1 memories that are not the owner's.
  const auto bytes = static_cast<std::int64_t>(count * sizeof(float)) * (ranks - 1);
  EXPECT_EQ(sent, bytes);
  EXPECT_EQ(received, bytes);
}

INSTANTIATE_TEST_SUITE_P(RanksAndLengths, AllReduce,
                         ::testing::Combine(::testing::Values(1, 2, 3, 4, 7, 8),
                                            ::testing::Values<std::size_t>(0, 1, 2, 17, 4099, 100003)));

TEST(Local, SeveralReductionsAreUnderWayAtOnceAndCompleteInOrder) {
  for (int ranks : {2, 3, 8}) {
    const std::vector<std::size_t> counts{50021, 1, 0, 4096, 77777, 12};
    const auto errors = on_ranks(ranks, kOptions, [&](Communicator& comm) {
      for (int round = 0; round < 5; ++round) {
        std::vector<std::vector<float>> buckets;
        std::vector<std::unique_ptr<Pending>> pending;
        for (const auto count : counts) buckets.push_back(values_of(comm.rank(), count));
        for (auto& bucket : buckets) pending.push_back(comm.all_reduce(bucket));
        // Waiting in another order than posted must be possible; so must an exchange in between.
        double one = 1;
        comm.all_reduce(std::span(&one, 1), Reduce::sum);
        EXPECT_EQ(one, comm.size());
        for (std::size_t b : {5u, 0u, 3u, 1u, 2u, 4u}) pending[b]->wait();
        for (std::size_t b = 0; b < counts.size(); ++b) {
          EXPECT_TRUE(same_bits(buckets[b], expected_sum(ranks, counts[b])));
          ASSERT_TRUE(pending[b]->complete());
          EXPECT_LE(pending[b]->timing().posted, pending[b]->timing().done);
          if (b > 0) {
            EXPECT_LE(pending[b - 1]->timing().posted, pending[b]->timing().posted);
            EXPECT_LE(pending[b - 1]->timing().done, pending[b]->timing().done);
          }
        }
      }
    });
    EXPECT_THAT(errors, Each(""));
  }
}

TEST(Local, AllReduceReturnsBeforeTheOthersHaveCome) {
  std::atomic<bool> posted{false};
  const auto errors = on_ranks(2, kOptions, [&](Communicator& comm) {
    std::vector<float> values(1000, 1.0f);
    if (comm.rank() == 1) {
      while (!posted) std::this_thread::yield();
      std::this_thread::sleep_for(milliseconds(20));
    }
    auto pending = comm.all_reduce(values);
    if (comm.rank() == 0) {
      EXPECT_FALSE(pending->complete());
      posted = true;
    }
    pending->wait();
    const auto timing = pending->timing();
    if (comm.rank() == 0) {
      EXPECT_GE(timing.done - timing.posted, milliseconds(20));
    }
    EXPECT_EQ(values, std::vector<float>(1000, 2.0f));
  });
  EXPECT_THAT(errors, Each(""));
}

TEST(Local, ResultDoesNotDependOnWhoComesFirst) {
  const int ranks = 3;
  const auto expected = expected_sum(ranks, 5000);
  for (int last = 0; last < ranks; ++last) {
    const auto errors = on_ranks(ranks, kOptions, [&](Communicator& comm) {
      auto values = values_of(comm.rank(), 5000);
      if (comm.rank() == last) std::this_thread::sleep_for(milliseconds(5));
      comm.all_reduce(values)->wait();
      EXPECT_TRUE(same_bits(values, expected));
    });
    EXPECT_THAT(errors, Each(""));
  }
}

class Small : public ::testing::TestWithParam<int> {};

TEST_P(Small, DoublesAreSummedInTheTreesOrderAndBoundedExactly) {
  const int ranks = GetParam();
  const auto value = [](int rank, int i) { return std::ldexp(1.0 / (3 + rank + i), (rank * 13) % 40); };
  const auto errors = on_ranks(ranks, kOptions, [&](Communicator& comm) {
    for (const Reduce reduce : {Reduce::sum, Reduce::min, Reduce::max}) {
      std::vector<double> values(5);
      for (int i = 0; i < 5; ++i) values[static_cast<std::size_t>(i)] = value(comm.rank(), i);
      comm.all_reduce(values, reduce);
      for (int i = 0; i < 5; ++i) {
        std::vector<double> column;
        for (int r = 0; r < ranks; ++r) column.push_back(value(r, i));
        const double expected = reduce == Reduce::min ? *std::min_element(column.begin(), column.end())
                                : reduce == Reduce::max
                                    ? *std::max_element(column.begin(), column.end())
                                    : base::tree_fold<double>(column, std::plus<double>{});
        EXPECT_EQ(values[static_cast<std::size_t>(i)], expected);
      }
    }
  });
  EXPECT_THAT(errors, Each(""));
}

TEST_P(Small, BroadcastComesFromEveryRoot) {
  const int ranks = GetParam();
  const auto errors = on_ranks(ranks, kOptions, [&](Communicator& comm) {
    for (int root = 0; root < ranks; ++root)
      for (std::size_t bytes : {0u, 1u, 1000u}) {
        std::vector<std::byte> block(bytes, static_cast<std::byte>(comm.rank() + 1));
        comm.broadcast(block, root);
        EXPECT_THAT(block, Each(static_cast<std::byte>(root + 1)));
      }
  });
  EXPECT_THAT(errors, Each(""));
}

TEST_P(Small, AllGatherKeepsTheOrderOfRanks) {
  const int ranks = GetParam();
  const auto errors = on_ranks(ranks, kOptions, [&](Communicator& comm) {
    const std::array<int, 3> mine{comm.rank(), comm.rank() * 10, -1};
    std::vector<int> all(3 * static_cast<std::size_t>(ranks));
    comm.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
    for (int r = 0; r < ranks; ++r) {
      EXPECT_EQ(all[static_cast<std::size_t>(3 * r)], r);
      EXPECT_EQ(all[static_cast<std::size_t>(3 * r + 1)], r * 10);
      EXPECT_EQ(all[static_cast<std::size_t>(3 * r + 2)], -1);
    }
  });
  EXPECT_THAT(errors, Each(""));
}

TEST_P(Small, NobodyLeavesABarrierBeforeAllHaveCome) {
  const int ranks = GetParam();
  std::atomic<int> come{0};
  const auto errors = on_ranks(ranks, kOptions, [&](Communicator& comm) {
    for (int round = 1; round <= 20; ++round) {
      ++come;
      comm.barrier();
      EXPECT_GE(come, round * ranks);
    }
  });
  EXPECT_THAT(errors, Each(""));
}

INSTANTIATE_TEST_SUITE_P(Ranks, Small, ::testing::Values(1, 2, 3, 4, 7, 8));

TEST(LocalFailure, AbortReachesRanksThatWaitAndRanksThatComeLater) {
  const auto errors = on_ranks(4, kOptions, [&](Communicator& comm) {
    std::vector<float> values(100000, 1.0f);
    if (comm.rank() == 2) {
      std::this_thread::sleep_for(milliseconds(10));
      comm.abort("the loss is no longer finite");
      comm.barrier();  // it throws for the rank itself, too
    } else if (comm.rank() == 1) {
      comm.barrier();
    } else {
      auto first = comm.all_reduce(values);
      first->wait();
    }
  });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("rank 2 gave up"), HasSubstr("the loss is no longer finite"))));
}

TEST(LocalFailure, DeadlineNamesTheRanksThatDidNotCome) {
  const auto begin = base::Clock::now();
  const auto errors = on_ranks(4, {.deadline = std::chrono::seconds(1)}, [&](Communicator& comm) {
    std::vector<float> values(10);
    if (comm.rank() == 1 || comm.rank() == 3) {
      std::this_thread::sleep_for(milliseconds(1300));
      comm.barrier();
    } else {
      comm.all_reduce(values)->wait();
    }
  });
  EXPECT_LT(base::seconds_since(begin), 5.0);
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("rank 1 on host"), HasSubstr("rank 3 on host"),
                                 HasSubstr("did not enter"), HasSubstr("all-reduce of 10 floats"))));
}

TEST(LocalFailure, SizesThatDifferAreAnErrorOnAllRanks) {
  const auto errors = on_ranks(3, kOptions, [&](Communicator& comm) {
    std::vector<float> values(comm.rank() == 1 ? 99 : 100);
    comm.all_reduce(values)->wait();
  });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("99 floats"), HasSubstr("100 floats"))));
  const auto roots = on_ranks(3, kOptions, [&](Communicator& comm) {
    std::vector<std::byte> block(8);
    comm.broadcast(block, comm.rank() == 1 ? 1 : 0);
  });
  EXPECT_THAT(roots, Each(AllOf(HasSubstr("from rank 0"), HasSubstr("from rank 1"))));
}

TEST(LocalFailure, DifferentCollectivesAreAnErrorOnAllRanks) {
  const auto errors = on_ranks(2, kOptions, [&](Communicator& comm) {
    double value = 0;
    if (comm.rank() == 0)
      comm.barrier();
    else
      comm.all_reduce(std::span(&value, 1), Reduce::max);
  });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("barrier"), HasSubstr("max of 1 doubles"))));
}

TEST(LocalFailure, MemoryMayBeFreedWhenARankLeavesByAnError) {
  // Rank 0 throws with reductions under way: its buffers die while the others want to sum them. Nobody may
  // touch them then (a sanitizer would tell), and the others must not wait for ever.
  for (int round = 0; round < 20; ++round) {
    const auto errors = on_ranks(3, kOptions, [&](Communicator& comm) {
      std::vector<std::vector<float>> buckets(4, std::vector<float>(30000, 1.0f));
      std::vector<std::unique_ptr<Pending>> pending;
      for (auto& bucket : buckets) {
        pending.push_back(comm.all_reduce(bucket));
        if (comm.rank() == 0 && pending.size() == 3)
          throw std::runtime_error("rank 0 has an error of its own");
      }
      for (auto& one : pending) one->wait();
    });
    EXPECT_EQ(errors[0], "rank 0 has an error of its own");
    EXPECT_THAT(errors[1], HasSubstr("rank 0"));
    EXPECT_THAT(errors[2], HasSubstr("rank 0"));
  }
}

TEST(LocalFailure, WorkThatThrowsFailsTheGroupAndLeavesNobodyWaiting) {
  // Longer than a test may take: nobody may wait for it.
  local::Group group(2, std::chrono::hours(1));
  const auto exchange = [&](int rank) -> std::string {
    try {
      group.exchange(rank, {.kind = local::OperationKind::barrier}, {},
                     [](const auto&) { throw std::runtime_error("no memory for the sum"); });
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  };
  std::array<std::string, 2> errors;
  std::thread first([&] { errors[0] = exchange(0); });
  errors[1] = exchange(1);
  first.join();
  // Whoever came last did the work and has its error, the other hears of it.
  EXPECT_THAT(errors, ::testing::UnorderedElementsAre(HasSubstr("no memory for the sum"),
                                                      HasSubstr("could not do its part of barrier")));
  EXPECT_THROW(group.check(), base::Error);
}

TEST(LocalFailure, EveryFailureIsAnErrorOfKindComm) {
  auto communicators = make_local(1);
  communicators[0]->abort("enough");
  std::vector<float> values(1);
  try {
    auto pending = communicators[0]->all_reduce(values);
    FAIL() << "no error";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::comm);
  }
  EXPECT_THROW((void)make_local(0), base::Error);
}

TEST(Local, OneRankAloneMovesNothingAndIsCompleteAtOnce) {
  auto communicators = make_local(1);
  Communicator& comm = *communicators[0];
  std::vector<float> values{1, 2, 3};
  const auto pending = comm.all_reduce(values);
  EXPECT_TRUE(pending->complete());
  EXPECT_EQ(pending->timing().posted, pending->timing().done);
  comm.barrier();
  EXPECT_EQ(values, (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(comm.traffic().collectives, 2);
  EXPECT_EQ(comm.traffic().steps, 0);
  EXPECT_EQ(comm.traffic().bytes_sent, 0);
}

}  // namespace
}  // namespace paceline::comm

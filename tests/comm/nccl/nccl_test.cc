#include "comm/nccl/nccl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "comm/nccl/fixture.h"
#include "comm/values.h"

namespace paceline::comm::nccl {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

TEST_F(Nccl, EveryCollectiveIsRightForOddSizesInPlaceAndApart) {
  for (const auto& [ranks, blocks] : {std::pair(2, false), {4, false}, {2, true}, {4, true}}) {
    is_blocking_ = blocks;
    const auto errors = on_devices(ranks, [ranks = ranks](Communicator& comm, const base::Memory& device) {
      const int rank = comm.rank();
      const auto me = static_cast<std::size_t>(rank), n = static_cast<std::size_t>(ranks);
      for (const std::size_t count : {0, 1, 5, 1000, 65537}) {
        const auto values = whole_numbers(rank, count), long_values = whole_numbers(rank, n * count);
        const auto sum = sum_of_whole_numbers(ranks, count);
        const auto part = part_of(sum_of_whole_numbers(ranks, n * count), me, count);
        const auto apart = device.allocate(count), longer = device.allocate(n * count);

        const auto src = array_of(comm, device, values), long_src = array_of(comm, device, long_values);
        comm.all_reduce(src.array(), apart.array())->wait();
        EXPECT_EQ(read(apart.array()), sum);
        EXPECT_EQ(read(src.array()), values);
        comm.reduce_scatter(long_src.array(), apart.array())->wait();
        EXPECT_EQ(read(apart.array()), part);
        comm.all_gather(src.array(), longer.array())->wait();
        for (std::size_t other = 0; other < n; ++other)
          EXPECT_EQ(part_of(read(longer.array()), other, count),
                    whole_numbers(static_cast<int>(other), count));

        const auto mine = long_src.array().subarray(me * count, count);
        comm.reduce_scatter(long_src.array(), mine)->wait();
        EXPECT_EQ(read(mine), part);
        comm.all_gather(mine, long_src.array())->wait();
        EXPECT_EQ(read(long_src.array()), sum_of_whole_numbers(ranks, n * count));
        comm.broadcast(src.array(), ranks - 1)->wait();
        EXPECT_EQ(read(src.array()), whole_numbers(ranks - 1, count));
        device.write(values, src.array());
        comm.all_reduce(src.array())->wait();
        EXPECT_EQ(read(src.array()), sum);
      }
      EXPECT_EQ(comm.name(), "nccl");
      EXPECT_THAT(comm.algorithm(), AllOf(HasSubstr("NCCL 2.28.9"), HasSubstr("local")));
    });
    EXPECT_THAT(errors, Each(""));
  }
  EXPECT_TRUE(said_.empty());
}

TEST_F(Nccl, SumsAreTheSameBitsOnAllRanksAndTheTreesOnlyOnDemand) {
  constexpr int kRanks = 4;
  const auto expected = tree_of(kRanks, kCount);
  const auto scattered = tree_of(kRanks, kRanks * kCount);
  std::vector<std::vector<float>> sums(kRanks);
  const auto errors = on_devices(kRanks, [&](Communicator& comm, const base::Memory& device) {
    const auto me = static_cast<std::size_t>(comm.rank());
    const auto values = values_of(comm.rank(), kCount);
    const auto array = array_of(comm, device, values);
    EXPECT_FALSE(comm.sums_in_tree());
    comm.all_reduce(array.array())->wait();
    sums[me] = read(array.array());

    comm.demand_tree();
    EXPECT_TRUE(comm.sums_in_tree());
    device.write(values, array.array());
    comm.all_reduce(array.array())->wait();
    EXPECT_TRUE(same_bits(read(array.array()), expected));
    const auto long_array = array_of(comm, device, values_of(comm.rank(), kRanks * kCount));
    const auto part = long_array.array().subarray(me * kCount, kCount);
    comm.reduce_scatter(long_array.array(), part)->wait();
    EXPECT_TRUE(same_bits(read(part), part_of(scattered, me, kCount)));
    // Several at once share the memory of the parts.
    device.write(values, array.array());
    std::vector<std::unique_ptr<Pending>> pending;
    for (const auto& [begin, count] : {std::pair<std::size_t, std::size_t>{0, 300}, {300, 0}, {300, 700}})
      pending.push_back(comm.all_reduce(array.array().subarray(begin, count)));
    for (const auto& one : pending) one->wait();
    EXPECT_TRUE(same_bits(read(array.array()), expected));
  });
  EXPECT_THAT(errors, Each(""));
  for (const auto& sum : sums) EXPECT_TRUE(same_bits(sum, sums[0]));
  EXPECT_FALSE(same_bits(sums[0], expected)) << "the imitated ring adds in an order of its own";
}

TEST_F(Nccl, WaitOrdersTheEngineAndDoesNotBlockTheHost) {
  library_.hold();
  const auto errors = on_devices(2, [this](Communicator& comm, const base::Memory& device) {
    const auto array = array_of(comm, device, whole_numbers(comm.rank(), kCount));
    const auto first = comm.all_reduce(array.array().subarray(0, 500));
    const auto second = comm.all_reduce(array.array().subarray(500, 500));
    first->wait();
    second->wait();
    device.add(array.array(), array.array(), array.array());  // behind both
    EXPECT_FALSE(first->complete());
    comm.barrier();  // both ranks have come here while nothing was done
    if (comm.rank() == 0) library_.release();
    auto expected = sum_of_whole_numbers(2, kCount);
    for (std::size_t i = 0; i < kCount; ++i) expected[i] = 2 * (2 * static_cast<float>(i % 13) + 1);
    EXPECT_EQ(read(array.array()), expected);
    EXPECT_TRUE(second->complete());
    const auto one = first->timing(), other = second->timing();
    EXPECT_LE(one.posted, one.done);
    EXPECT_LE(one.done, other.posted);
    EXPECT_LE(other.posted, other.done);
  });
  EXPECT_THAT(errors, Each(""));
}

TEST_F(Nccl, LeavesTheHostsArraysAndNumbersToTheCommunicatorBelow) {
  const auto errors = on_devices(2, [](Communicator& comm, const base::Memory& device) {
    const auto values = values_of(comm.rank(), kCount);
    const auto array = array_of(comm, device, values);
    const auto before = comm.traffic();
    std::vector<float> host = values;
    comm.all_reduce(std::span<float>(host))->wait();
    EXPECT_TRUE(same_bits(host, tree_of(2, kCount)));
    double sum = 1;
    comm.all_reduce(std::span(&sum, 1), Reduce::sum);
    EXPECT_EQ(sum, 2);
    comm.all_reduce(array.array())->wait();
    EXPECT_EQ(comm.traffic().collectives, before.collectives + 3);
    EXPECT_GE(comm.traffic().bytes_sent,
              before.bytes_sent + static_cast<std::int64_t>(array.array().bytes()));
  });
  EXPECT_THAT(errors, Each(""));
  EXPECT_EQ(library_.calls("ncclAllReduce"), 2);
}

TEST_F(Nccl, SaysWhatItsTimesContain) {
  library_.launch_from_another_thread(std::chrono::milliseconds(1));
  for (const bool blocks : {false, true}) {
    is_blocking_ = blocks;
    const int before = library_.launched_by_another_thread();
    const auto errors = on_devices(2, [blocks](Communicator& comm, const base::Memory& device) {
      const auto array = array_of(comm, device, whole_numbers(comm.rank(), kCount));
      const auto pending = comm.all_reduce(array.array());
      pending->wait();
      EXPECT_EQ(read(array.array()), sum_of_whole_numbers(2, kCount));
      EXPECT_LE(pending->timing().posted, pending->timing().done);
      EXPECT_THAT(comm.algorithm(),
                  HasSubstr(blocks ? "NCCL 2.28.9, calls that block; the host's numbers"
                                   : "NCCL 2.28.9, calls that do not block: times contain the "
                                     "start of a thread; the host's numbers"));
    });
    EXPECT_THAT(errors, Each(""));
    EXPECT_EQ(library_.launched_by_another_thread() - before, blocks ? 0 : 2);
  }
}

TEST_F(Nccl, OneRankAloneNeedsNone) {
  const auto errors = on_devices(1, [](Communicator& comm, const base::Memory& device) {
    const auto array = array_of(comm, device, whole_numbers(0, kCount));
    comm.all_reduce(array.array())->wait();
    EXPECT_EQ(read(array.array()), whole_numbers(0, kCount));
    EXPECT_EQ(comm.name(), "local");
  });
  EXPECT_THAT(errors, Each(""));
  EXPECT_EQ(library_.calls("ncclGetUniqueId"), 0);
}

// ---- what NCCL does not join goes by way of the host, and rank 0 says why

TEST_F(Nccl, TwoRanksOnOneDeviceStayWithTheHost) {
  shared_device_ = true;
  const auto errors = on_devices(2, [](Communicator& comm, const base::Memory& device) {
    const auto array = array_of(comm, device, values_of(comm.rank(), kCount));
    comm.all_reduce(array.array())->wait();
    EXPECT_TRUE(same_bits(read(array.array()), tree_of(2, kCount)));
    EXPECT_TRUE(comm.sums_in_tree());
    EXPECT_EQ(comm.name(), "local");
    EXPECT_THAT(comm.algorithm(), HasSubstr("by way of the host"));
  });
  EXPECT_THAT(errors, Each(""));
  EXPECT_THAT(said_, testing::ElementsAre(AllOf(HasSubstr("through the memory of the host"),
                                                HasSubstr("ranks 0 and 1 share device one"))));
}

TEST_F(Nccl, TellsDevicesByUuidThenByMachine) {
  const auto offer = [](const char* device, const char* uuid, const char* machine) {
    return Offer{device, uuid, machine, ""};
  };
  const struct {
    Offer one, other;
    const char* why;
  } cases[] = {{offer("0000:01:00.0 of a", "u1", "m"), offer("0000:02:00.0 of a", "u2", "m"), ""},
               {offer("0000:01:00.0 of a", "u1", "m"), offer("0000:01:00.0 of a", "u1", "m"),
                "ranks 0 and 1 share device 0000:01:00.0 of a, which NCCL refuses"},
               // Two virtual machines of one name.
               {offer("0000:01:00.0 of a", "u1", "m"), offer("0000:01:00.0 of a", "u2", "n"), ""},
               {offer("0000:01:00.0 of a", "", "m"), offer("0000:01:00.0 of a", "", "n"), ""},
               // Two containers with one GPU.
               {offer("0000:01:00.0 of a", "u1", "m"), offer("0000:01:00.0 of b", "u1", "m"),
                "ranks 0 and 1 share device 0000:01:00.0 of a, which NCCL refuses"},
               {offer("0000:01:00.0 of a", "u1", "m"), offer("0000:01:00.0 of a", "u2", "m"),
                "ranks 0 and 1 have parts (MIG) of device 0000:01:00.0 of a, which NCCL refuses"},
               {offer("0000:01:00.0 of a", "", "m"), offer("0000:01:00.0 of a", "", "m"),
                "ranks 0 and 1 share device 0000:01:00.0 of a, which NCCL refuses"}};
  for (const auto& [one, other, why] : cases) EXPECT_EQ(why_not_joined(std::vector{one, other}), why);
}

TEST_F(Nccl, WithoutTheLibraryItSaysWhatToInstall) {
  open_ = []() -> const Api& { base::fail(base::ErrorKind::device, "nccl: needs NCCL; install it"); };
  const auto errors = on_devices(2, [](Communicator& comm, const base::Memory& device) {
    const auto array = array_of(comm, device, values_of(comm.rank(), kCount));
    comm.all_reduce(array.array())->wait();
    EXPECT_TRUE(same_bits(read(array.array()), tree_of(2, kCount)));
  });
  EXPECT_THAT(errors, Each(""));
  EXPECT_THAT(said_, testing::ElementsAre(HasSubstr("rank 0: nccl: needs NCCL; install it")));
}

TEST_F(Nccl, OneRankWithoutTheLibraryIsEnough) {
  std::atomic<int> asked = 0;
  open_ = [&]() -> const Api& {
    if (asked++ == 1) base::fail(base::ErrorKind::device, "nccl: not here");
    return Imitation::api();
  };
  const auto errors = on_devices(2, [](Communicator& comm, const base::Memory& device) {
    const auto array = array_of(comm, device, values_of(comm.rank(), kCount));
    comm.all_reduce(array.array())->wait();
    EXPECT_EQ(comm.name(), "local");
  });
  EXPECT_THAT(errors, Each(""));
  EXPECT_EQ(library_.calls("ncclCommInitRankConfig"), 0);
}

}  // namespace
}  // namespace paceline::comm::nccl

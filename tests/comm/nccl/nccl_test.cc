#include "comm/nccl/nccl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "comm/emulate.h"
#include "comm/host_bounce.h"
#include "comm/make.h"
#include "comm/nccl/imitation.h"
#include "comm/nccl/thread_device.h"
#include "comm/on_processes.h"
#include "comm/values.h"

namespace paceline::comm::nccl {
namespace {

using base::Array;
using base::OwnedArray;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::size_t kCount = 1000;
constexpr milliseconds kLong{60000};

/// A thread a rank, each with a device of its own, joined by an imitated NCCL.
class Nccl : public testing::Test {
 protected:
  using Body = std::function<void(Communicator&, const base::Memory&)>;

  /// Each rank's error text, "" for none.
  std::vector<std::string> on_devices(int ranks, const Body& body) {
    std::vector<std::unique_ptr<ThreadDevice>> devices;
    for (int rank = 0; rank < ranks; ++rank)
      devices.push_back(std::make_unique<ThreadDevice>(shared_device_ ? "one" : std::to_string(rank)));
    auto communicators = around(
        host_bounce(emulate(make_local(ranks), {})),
        {.open = open_, .deadline = deadline_, .say = [this](const auto& text) { said_.push_back(text); }});
    std::vector<std::string> errors(communicators.size());
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r < communicators.size(); ++r)
      threads.emplace_back([&, r] {
        try {
          body(*communicators[r], *devices[r]);
        } catch (const std::exception& error) {
          errors[r] = error.what();
          communicators[r]->abort(error.what());
        }
      });
    for (auto& thread : threads) thread.join();
    communicators.clear();
    EXPECT_EQ(library_.misuse(), "");
    EXPECT_EQ(library_.living_comms(), 0);
    return errors;
  }

  Imitation library_{[](void* stream, std::function<void()> work) {
    static_cast<WorkQueue*>(stream)->put(std::move(work));
  }};
  std::function<const Api&()> open_ = []() -> const Api& { return Imitation::api(); };
  milliseconds deadline_ = kLong;
  bool shared_device_ = false;
  std::vector<std::string> said_;
};

std::vector<float> read(Array array) {
  std::vector<float> values(array.size);
  array.memory->read(array, values);
  return values;
}

/// Small whole numbers, whose sums are exact in any order.
std::vector<float> whole_numbers(int rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 13) + static_cast<float>(rank);
  return values;
}
std::vector<float> sum_of_whole_numbers(int ranks, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] =
        static_cast<float>(ranks) * static_cast<float>(i % 13) + static_cast<float>(ranks * (ranks - 1) / 2);
  return values;
}
std::vector<float> part_of(const std::vector<float>& values, std::size_t part, std::size_t count) {
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(part * count);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

OwnedArray array_of(Communicator& comm, const base::Memory& device, const std::vector<float>& values) {
  auto owned = comm.array(values.size(), device);
  device.write(values, owned.array());
  return owned;
}

TEST_F(Nccl, EveryCollectiveIsRightForOddSizesInPlaceAndApart) {
  for (const int ranks : {2, 4}) {
    const auto errors = on_devices(ranks, [ranks](Communicator& comm, const base::Memory& device) {
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
  EXPECT_THAT(said_, testing::ElementsAre(AllOf(HasSubstr("by way of the host's memory"),
                                                HasSubstr("ranks 0 and 1 share device one"))));
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

// ---- what goes wrong ends on every rank, with rank and collective named

/// Some steps as a training has them.
void train(Communicator& comm, const base::Memory& device) {
  const auto all = static_cast<std::size_t>(comm.size()) * kCount;
  const auto array = array_of(comm, device, whole_numbers(comm.rank(), all));
  const auto part = device.allocate(kCount);
  for (int step = 0; step < 3; ++step) {
    const auto reduced = comm.all_reduce(array.array().subarray(0, kCount));
    const auto scattered = comm.reduce_scatter(array.array(), part.array());
    const auto gathered = comm.all_gather(part.array(), array.array());
    const auto sent = comm.broadcast(part.array(), 1);
    for (auto* one : {&reduced, &scattered, &gathered, &sent}) {
      (*one)->wait();
      (void)(*one)->timing();
    }
    comm.barrier();
  }
}

TEST_F(Nccl, AnErrorOfAnyCallEndsEveryRank) {
  struct Case {
    std::string function, what;
    int number;
  };
  const std::vector<Case> cases = {
      {"ncclGetUniqueId", "the start", 1},     {"ncclCommInitRankConfig", "the start", 1},
      {"ncclAllReduce", "all_reduce 1 of", 1}, {"ncclReduceScatter", "reduce_scatter 2 of", 1},
      {"ncclAllGather", "all_gather 3 of", 1}, {"ncclBroadcast", "broadcast 4 of", 1},
      {"ncclAllReduce", "all_reduce 9 of", 3}, {"ncclBroadcast", "broadcast 12 of", 3},
  };
  for (const int ranks : {2, 4})
    for (const auto& one : cases)
      for (int failing : {0, ranks - 1})
        for (const bool in_background : {false, true}) {
          if (one.function == "ncclGetUniqueId" && (failing > 0 || in_background)) continue;
          SCOPED_TRACE(fmt::format("{} number {} of rank {} of {}{}", one.function, one.number, failing,
                                   ranks, in_background ? ", in the background" : ""));
          library_.fail(failing, one.function, library_.calls_of(failing, one.function) + one.number,
                        in_background);
          const auto errors = on_devices(ranks, train);
          EXPECT_THAT(errors[static_cast<std::size_t>(failing)],
                      AllOf(HasSubstr(fmt::format("nccl: rank {} of {}", failing, ranks)),
                            HasSubstr("unhandled cuda error (imitated failure)")));
          // Of an error in the background NCCL does not say whose it is: the oldest is named.
          const auto named = in_background ? AnyOf(HasSubstr("the start failed"), HasSubstr(" floats failed"))
                                           : AnyOf(HasSubstr(one.what), HasSubstr(one.what));
          EXPECT_THAT(errors[static_cast<std::size_t>(failing)], named);
          for (std::size_t other = 0; other < errors.size(); ++other)
            EXPECT_THAT(errors[other], HasSubstr(fmt::format("rank {} of {}", failing, ranks)));
        }
}

TEST_F(Nccl, AnErrorThatComesWhileTheDeviceWaitsEndsEveryRank) {
  // Rank 1's second poll after the first collective: the watch's.
  const auto errors = on_devices(2, [this](Communicator& comm, const base::Memory& device) {
    const auto array = array_of(comm, device, whole_numbers(comm.rank(), kCount));
    const auto pending = comm.all_reduce(array.array());
    pending->wait();
    comm.barrier();
    if (comm.rank() == 1) library_.break_down(1);
    comm.barrier();
    (void)comm.all_reduce(array.array());
    for (;;) {
      std::this_thread::sleep_for(milliseconds(1));
      comm.check();
    }
  });
  EXPECT_THAT(errors[1], AllOf(HasSubstr("nccl: rank 1 of 2"), HasSubstr("unhandled cuda error")));
  EXPECT_THAT(errors[0], HasSubstr("rank 1 of 2"));
}

TEST_F(Nccl, ARankThatDoesNotComeIsADeadline) {
  deadline_ = milliseconds(300);
  const auto errors = on_devices(2, [](Communicator& comm, const base::Memory& device) {
    const auto array = array_of(comm, device, whole_numbers(comm.rank(), kCount));
    if (comm.rank() == 0) {
      const auto pending = comm.all_reduce(array.array());
      pending->wait();
      (void)pending->timing();
    }
    comm.barrier();
  });
  EXPECT_THAT(errors[0],
              AllOf(HasSubstr("nccl: rank 0 of 2 (device 0): all_reduce 1 of 1000 floats is not done"),
                    HasSubstr("300 ms after it began (--deadline)")));
  EXPECT_THAT(errors[1], AllOf(HasSubstr("rank 0 gave up"), HasSubstr("all_reduce 1 of 1000")));
}

TEST_F(Nccl, WhatTheDeviceHasNotComeToHasNoDeadline) {
  deadline_ = milliseconds(200);
  const auto errors = on_devices(2, [](Communicator& comm, const base::Memory& device) {
    const auto array = array_of(comm, device, whole_numbers(comm.rank(), kCount));
    std::promise<void> computed;
    dynamic_cast<const ThreadDevice&>(device).put([&] {
      computed.get_future().wait();  // the engine's own work, which takes longer than the deadline
    });
    const auto pending = comm.all_reduce(array.array());
    std::this_thread::sleep_for(milliseconds(500));
    computed.set_value();
    pending->wait();
    EXPECT_EQ(read(array.array()), sum_of_whole_numbers(2, kCount));
  });
  EXPECT_THAT(errors, Each(""));
}

TEST_F(Nccl, TheFailureOfTheHostsCommunicatorEndsWhatIsUnderWay) {
  const auto errors = on_devices(2, [](Communicator& comm, const base::Memory& device) {
    const auto array = array_of(comm, device, whole_numbers(comm.rank(), kCount));
    if (comm.rank() == 1) base::fail(base::ErrorKind::data, "data: image 7 is damaged");
    const auto pending = comm.all_reduce(array.array());
    pending->wait();
    (void)pending->timing();
  });
  EXPECT_EQ(errors[1], "data: image 7 is damaged");
  EXPECT_THAT(errors[0],
              AllOf(HasSubstr("nccl: rank 0 of 2"), HasSubstr("all_reduce 1 of 1000 floats was given up"),
                    HasSubstr("rank 1 gave up: data: image 7 is damaged")));
}

TEST_F(Nccl, ARankThatNeverJoinsIsADeadlineToo) {
  deadline_ = milliseconds(300);
  const auto errors = on_devices(2, [this](Communicator& comm, const base::Memory& device) {
    if (comm.rank() == 0) library_.leave_out(1);
    comm.barrier();
    (void)comm.array(kCount, device);
  });
  EXPECT_THAT(errors,
              testing::Contains(AllOf(HasSubstr("the start is not done"), HasSubstr("of 2 (device"))));
  EXPECT_THAT(errors, Each(Not("")));
}

// ---- ranks of several processes

class NcclProcesses : public Nccl {
 protected:
  static constexpr int kProcesses = 2, kEach = 2, kRanks = kProcesses * kEach;

  Outcome run(const Body& body) {
    std::vector<std::unique_ptr<ThreadDevice>> devices;
    for (int rank = 0; rank < kRanks; ++rank)
      devices.push_back(std::make_unique<ThreadDevice>(std::to_string(rank)));
    const auto outcome = on_processes(
        kProcesses, kEach, {.shared_memory = false},
        [&](Communicator& comm) { body(comm, *devices[static_cast<std::size_t>(comm.rank())]); },
        [this](auto joined) { return around(host_bounce(std::move(joined)), {.open = open_}); });
    EXPECT_EQ(library_.misuse(), "");
    EXPECT_EQ(library_.living_comms(), 0);
    return outcome;
  }
};

TEST_F(NcclProcesses, AreJoinedByTheIdThatTheHostsCommunicatorHandsOut) {
  const auto outcome = run([](Communicator& comm, const base::Memory& device) {
    const auto array = array_of(comm, device, whole_numbers(comm.rank(), kCount));
    EXPECT_EQ(comm.name(), "nccl");
    comm.all_reduce(array.array())->wait();
    EXPECT_EQ(read(array.array()), sum_of_whole_numbers(kRanks, kCount));
    comm.demand_tree();
    device.write(values_of(comm.rank(), kCount), array.array());
    comm.all_reduce(array.array())->wait();
    EXPECT_TRUE(same_bits(read(array.array()), tree_of(kRanks, kCount)));
  });
  EXPECT_THAT(outcome.errors, Each(""));
  EXPECT_EQ(library_.calls("ncclGetUniqueId"), 1);
}

TEST_F(NcclProcesses, ALostRankIsNamedByTheHostsCommunicatorAndEndsWhatIsUnderWay) {
  const auto outcome = run([](Communicator& comm, const base::Memory& device) {
    const auto array = array_of(comm, device, whole_numbers(comm.rank(), kCount));
    if (comm.rank() == 3) base::fail(base::ErrorKind::device, "device 3: it fell off the bus");
    const auto pending = comm.all_reduce(array.array());
    pending->wait();
    (void)pending->timing();
  });
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_THAT(outcome.errors[static_cast<std::size_t>(rank)],
                AllOf(HasSubstr(fmt::format("nccl: rank {} of 4", rank)),
                      HasSubstr("all_reduce 1 of 1000 floats was given up"),
                      HasSubstr("rank 3 gave up: device 3: it fell off the bus")));
}

// ---- the imitation itself

TEST(NcclImitation, NoticesCallsInAnotherOrder) {
  Imitation library([](void* stream, std::function<void()> work) {
    static_cast<WorkQueue*>(stream)->put(std::move(work));
  });
  const Api& api = Imitation::api();
  UniqueId id;
  EXPECT_EQ(api.ncclGetUniqueId(&id), kSuccess);
  std::array<Comm, 2> comms{};
  std::vector<float> values(8);
  {
    std::array<WorkQueue, 2> queues;
    for (int rank = 0; rank < 2; ++rank) {
      Config config;
      EXPECT_EQ(api.ncclCommInitRankConfig(&comms[static_cast<std::size_t>(rank)], 2, id, rank, &config),
                kInProgress);
    }
    for (auto* comm : comms)
      for (Status state = kInProgress; state == kInProgress;) (void)api.ncclCommGetAsyncError(comm, &state);
    (void)api.ncclAllReduce(values.data(), values.data(), 4, kFloat32, kSum, comms[0], &queues[0]);
    (void)api.ncclBroadcast(values.data() + 4, values.data() + 4, 4, kFloat32, 0, comms[1], &queues[1]);
  }
  EXPECT_THAT(library.misuse(), AllOf(HasSubstr("all_reduce of 4"), HasSubstr("broadcast of 4 from 0")));
  for (auto* comm : comms) (void)api.ncclCommAbort(comm);
  (void)api.ncclCommAbort(comms[0]);
  EXPECT_EQ(library.living_comms(), 0);
}

}  // namespace
}  // namespace paceline::comm::nccl

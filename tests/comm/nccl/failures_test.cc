/// What goes wrong ends on every rank, with rank and collective named.

#include "comm/nccl/nccl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>

#include "comm/nccl/fixture.h"
#include "comm/on_processes.h"
#include "comm/values.h"

namespace paceline::comm::nccl {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

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
  for (const bool blocks : {false, true}) {
    is_blocking_ = blocks;
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
                AllOf(HasSubstr("nccl: rank 0 of 2 (device 0): all_reduce 1 of 1000 floats is not complete"),
                      HasSubstr("300 ms after it began (--deadline)")));
    EXPECT_THAT(errors[1], AllOf(HasSubstr("rank 0 gave up"), HasSubstr("all_reduce 1 of 1000")));
  }
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
  std::latch posted(1);  // by then rank 0 has an all-reduce under way
  const auto errors = on_devices(2, [&](Communicator& comm, const base::Memory& device) {
    const auto array = array_of(comm, device, whole_numbers(comm.rank(), kCount));
    const auto first = comm.all_reduce(array.array());
    first->wait();
    (void)first->timing();  // it is done on this device, so the second one is what is under way
    if (comm.rank() == 1) {
      posted.wait();
      base::fail(base::ErrorKind::data, "data: image 7 is damaged");
    }
    const auto pending = comm.all_reduce(array.array());
    posted.count_down();
    pending->wait();
    (void)pending->timing();
  });
  EXPECT_EQ(errors[1], "data: image 7 is damaged");
  EXPECT_THAT(errors[0],
              AllOf(HasSubstr("nccl: rank 0 of 2"), HasSubstr("all_reduce 2 of 1000 floats was aborted"),
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
              testing::Contains(AllOf(HasSubstr("the start is not complete"), HasSubstr("of 2 (device"))));
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
        [this](auto joined) { return around(host_staging(std::move(joined)), {.open = open_}); });
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
  std::latch posted(3);  // by then the all-reduce is what the others have under way
  const auto outcome = run([&](Communicator& comm, const base::Memory& device) {
    const auto array = array_of(comm, device, whole_numbers(comm.rank(), kCount));
    const auto first = comm.all_reduce(array.array());
    first->wait();
    (void)first->timing();  // it is done on this device, so the second one is what is under way
    if (comm.rank() == 3) {
      posted.wait();
      base::fail(base::ErrorKind::device, "device 3: it fell off the bus");
    }
    const auto pending = comm.all_reduce(array.array());
    posted.count_down();
    pending->wait();
    (void)pending->timing();
  });
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_THAT(outcome.errors[static_cast<std::size_t>(rank)],
                AllOf(HasSubstr(fmt::format("nccl: rank {} of 4", rank)),
                      HasSubstr("all_reduce 2 of 1000 floats was aborted"),
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

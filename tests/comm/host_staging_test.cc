#include "comm/host_staging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/buffer.h"
#include "base/poisoned_memory.h"
#include "comm/emulate.h"
#include "comm/make.h"
#include "comm/values.h"

namespace paceline::comm {
namespace {

using base::Array;
using base::OwnedArray;
using base::PoisonedMemory;
using ::testing::Each;
using ::testing::HasSubstr;

/// Runs `body` on a thread a rank, each with a device of its own; each rank's error text, "" for none.
std::vector<std::string> on_devices(int ranks,
                                    const std::function<void(Communicator&, const PoisonedMemory&)>& body,
                                    const Emulation& emulation = {}) {
  auto communicators = host_staging(emulate(make_local(ranks), emulation));
  std::vector<std::string> errors(communicators.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < communicators.size(); ++r)
    threads.emplace_back([&, r] {
      try {
        const PoisonedMemory device;
        body(*communicators[r], device);
        EXPECT_EQ(device.live(), 0u);
      } catch (const std::exception& error) {
        errors[r] = error.what();
        communicators[r]->abort(error.what());
      }
    });
  for (auto& thread : threads) thread.join();
  return errors;
}

std::vector<float> read(Array array) {
  std::vector<float> values(array.size);
  array.memory->read(array, values);
  return values;
}

/// What the communicator below gives for the same values.
std::vector<float> summed_on_host(Communicator& comm, std::vector<float> values) {
  comm.all_reduce(std::span<float>(values))->wait();
  return values;
}

constexpr std::size_t kCount = 1000;

TEST(HostStaging, SumsADevicesBucketsWithTheBitsOfTheHost) {
  for (const int ranks : {1, 2, 3}) {
    const auto errors = on_devices(ranks, [](Communicator& comm, const PoisonedMemory& device) {
      const auto values = values_of(comm.rank(), kCount);
      const auto expected = summed_on_host(comm, values);
      const OwnedArray gradients = comm.array(kCount, device);
      for (int again = 0; again < 2; ++again) {
        device.write(values, gradients.array());
        std::vector<std::unique_ptr<Pending>> pending;
        for (const auto& [begin, count] : {std::pair<std::size_t, std::size_t>{0, 300}, {300, 0}, {300, 700}})
          pending.push_back(comm.all_reduce(gradients.array().subarray(begin, count)));
        for (const auto& one : pending) one->wait();
        EXPECT_TRUE(same_bits(read(gradients.array()), expected)) << "rank " << comm.rank();
      }
    });
    EXPECT_THAT(errors, Each(""));
  }
}

TEST(HostStaging, SumsOutOfPlaceAndInMemoryThatItDoesNotKnow) {
  const auto errors = on_devices(2, [](Communicator& comm, const PoisonedMemory& device) {
    const auto values = values_of(comm.rank(), kCount);
    const auto expected = summed_on_host(comm, values);
    const OwnedArray src = comm.array(kCount, device), dst = device.allocate(kCount);
    device.write(values, src.array());
    comm.all_reduce(src.array(), dst.array())->wait();
    EXPECT_TRUE(same_bits(read(dst.array()), expected));
    EXPECT_TRUE(same_bits(read(src.array()), values));
    device.write(values, dst.array());
    comm.all_reduce(dst.array(), src.array())->wait();
    EXPECT_TRUE(same_bits(read(src.array()), expected));
    EXPECT_TRUE(same_bits(read(dst.array()), values));
  });
  EXPECT_THAT(errors, Each(""));
}

TEST(HostStaging, ScattersToItsPlaceOrApart) {
  const auto errors = on_devices(2, [](Communicator& comm, const PoisonedMemory& device) {
    const auto values = values_of(comm.rank(), 2 * kCount);
    const auto sums = summed_on_host(comm, values);
    const auto begin = static_cast<std::size_t>(comm.rank()) * kCount;
    const std::vector<float> mine(sums.begin() + static_cast<std::ptrdiff_t>(begin),
                                  sums.begin() + static_cast<std::ptrdiff_t>(begin + kCount));
    const OwnedArray src = comm.array(2 * kCount, device), apart = device.allocate(kCount);
    device.write(values, src.array());
    comm.reduce_scatter(src.array(), apart.array())->wait();
    EXPECT_TRUE(same_bits(read(apart.array()), mine));
    EXPECT_TRUE(same_bits(read(src.array()), values));
    comm.reduce_scatter(src.array(), src.array().subarray(begin, kCount))->wait();
    EXPECT_TRUE(same_bits(read(src.array().subarray(begin, kCount)), mine));
  });
  EXPECT_THAT(errors, Each(""));
}

TEST(HostStaging, LeavesArraysOfTheHostToTheCommunicatorBelow) {
  const auto errors = on_devices(2, [](Communicator& comm, const PoisonedMemory&) {
    const auto values = values_of(comm.rank(), kCount);
    const OwnedArray array = comm.array(kCount, base::host_memory());
    std::ranges::copy(values, array.array().host().begin());
    comm.all_reduce(array.array())->wait();
    EXPECT_TRUE(same_bits(read(array.array()), summed_on_host(comm, values)));
  });
  EXPECT_THAT(errors, Each(""));
}

TEST(HostStaging, TimesWhatTheReductionBelowAndTheWritesTook) {
  constexpr double kLatency_s = 0.02;
  const auto errors =
      on_devices(2,
                 [](Communicator& comm, const PoisonedMemory& device) {
                   const OwnedArray gradients = comm.array(kCount, device);
                   const auto first = comm.all_reduce(gradients.array().subarray(0, 500));
                   const auto second = comm.all_reduce(gradients.array().subarray(500, 500));
                   EXPECT_FALSE(first->complete());
                   first->wait();
                   EXPECT_TRUE(first->complete());
                   second->wait();
                   // An emulated link of 20 ms a message, two of them, one reduction behind the other.
                   EXPECT_GE(base::seconds(first->timing().done - first->timing().posted), 2 * kLatency_s);
                   EXPECT_LE(first->timing().posted, second->timing().posted);
                   EXPECT_LE(first->timing().done, second->timing().done);
                   EXPECT_GE(base::seconds(second->timing().done - first->timing().posted), 4 * kLatency_s);
                 },
                 {.link = EmulatedLink{.latency_s = kLatency_s}});
  EXPECT_THAT(errors, Each(""));
}

TEST(HostStaging, CountsTheTrafficBelowAndSaysWhereItGoes) {
  const auto errors = on_devices(2, [](Communicator& comm, const PoisonedMemory& device) {
    const OwnedArray gradients = comm.array(kCount, device);
    const auto before = comm.traffic();
    comm.all_reduce(gradients.array())->wait();
    EXPECT_EQ(comm.traffic().collectives, before.collectives + 1);
    EXPECT_GT(comm.traffic().bytes_received, before.bytes_received);
    EXPECT_THAT(comm.algorithm(), HasSubstr("by way of the host"));
    EXPECT_EQ(comm.name(), "local");
  });
  EXPECT_THAT(errors, Each(""));
}

TEST(HostStaging, EndsWhenAnotherRankGivesUp) {
  const auto errors = on_devices(2, [](Communicator& comm, const PoisonedMemory& device) {
    const OwnedArray gradients = comm.array(kCount, device);
    if (comm.rank() == 1) base::fail(base::ErrorKind::device, "device 1: it is gone");
    comm.all_reduce(gradients.array())->wait();
  });
  EXPECT_THAT(errors[0], HasSubstr("device 1: it is gone"));
  EXPECT_EQ(errors[1], "device 1: it is gone");
}

TEST(HostStagingDeathTest, WithoutItADevicesArrayIsRefused) {
  const PoisonedMemory device;
  const auto communicators = make_local(1);
  const auto array = device.allocate(3);
  EXPECT_DEATH((void)communicators[0]->array(3, device), "memory of the host");
  EXPECT_DEATH((void)communicators[0]->all_reduce(array.array()), "it lies on the host");
}

}  // namespace
}  // namespace paceline::comm

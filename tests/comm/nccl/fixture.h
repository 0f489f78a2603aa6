#pragma once

/// Ranks on devices of their own that an imitated NCCL joins, for the tests of comm/nccl.

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comm/emulate.h"
#include "comm/host_staging.h"
#include "comm/make.h"
#include "comm/nccl/imitation.h"
#include "comm/nccl/nccl.h"
#include "comm/nccl/thread_device.h"

namespace paceline::comm::nccl {

constexpr std::size_t kCount = 1000;
constexpr std::chrono::milliseconds kLong{60000};

/// A thread a rank, each with a device of its own, joined by an imitated NCCL.
class Nccl : public testing::Test {
 protected:
  using Body = std::function<void(Communicator&, const base::Memory&)>;

  /// Each rank's error text, "" for none.
  std::vector<std::string> on_devices(int ranks, const Body& body) {
    std::vector<std::unique_ptr<ThreadDevice>> devices;
    for (int rank = 0; rank < ranks; ++rank)
      devices.push_back(std::make_unique<ThreadDevice>(shared_device_ ? "one" : std::to_string(rank)));
    std::vector<std::unique_ptr<Communicator>> communicators;
    for (auto& one : host_staging(emulate(make_local(ranks, {.stall_options = {.failed = failed_}}), {}))) {
      std::vector<std::unique_ptr<Communicator>> alone;
      alone.push_back(std::move(one));
      const auto hangs = [this, rank = static_cast<int>(communicators.size())](const std::string& what) {
        hangs_(rank, what);
      };
      communicators.push_back(
          std::move(around(std::move(alone), {.open = open_,
                                              .deadline = deadline_,
                                              .is_blocking = is_blocking_,
                                              .say = [this](const auto& text) { said_.push_back(text); },
                                              .hangs = hangs})
                        .front()));
    }
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
  std::chrono::milliseconds deadline_ = kLong;
  std::function<void(const std::string&, base::ErrorKind)> failed_;  ///< StallOptions::failed
  /// With a deadline below a second a rank may only have got no processor for so long.
  std::function<void(int rank, const std::string& what)> hangs_ = [this](int, const std::string& what) {
    EXPECT_LT(deadline_, std::chrono::seconds(1)) << what;
  };
  bool shared_device_ = false;
  bool is_blocking_ = false;
  std::vector<std::string> said_;
};

inline std::vector<float> read(base::Array array) {
  std::vector<float> values(array.size);
  array.memory->read(array, values);
  return values;
}

/// Small whole numbers, whose sums are exact in any order.
inline std::vector<float> whole_numbers(int rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 13) + static_cast<float>(rank);
  return values;
}
inline std::vector<float> sum_of_whole_numbers(int ranks, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] =
        static_cast<float>(ranks) * static_cast<float>(i % 13) + static_cast<float>(ranks * (ranks - 1) / 2);
  return values;
}
inline std::vector<float> part_of(const std::vector<float>& values, std::size_t part, std::size_t count) {
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(part * count);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

inline base::OwnedArray array_of(Communicator& comm, const base::Memory& device,
                                 const std::vector<float>& values) {
  auto owned = comm.array(values.size(), device);
  device.write(values, owned.array());
  return owned;
}

}  // namespace paceline::comm::nccl

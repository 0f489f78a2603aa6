/// Calls of NCCL or of the device that do not return: every rank is told, whichever thread asks, and the
/// process learns for which rank it cannot wait.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>

#include "comm/nccl/fixture.h"
#include "comm/nccl/gate.h"
#include "comm/nccl/nccl.h"
#include "comm/on_processes.h"

namespace paceline::comm::nccl {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::HasSubstr;

/// Of the start, and of the second all-reduce, which rank 0 alone enters.
struct Hanging {
  const char* name;
  bool start = false;  ///< on every rank
  bool call = false, query = false, abort = false;
  const char* said = "all_reduce 2 of 1000 floats";
};

/// Rank 0 hangs (in the start: all ranks), and each rank has a thread that asks for the failure, since its
/// own may hang. What hangs returns when all are told, so that everything can be destroyed.
class NcclHangs : public Nccl {
 protected:
  static constexpr auto kEnd = std::chrono::seconds(10);

  NcclHangs() {
    deadline_ = milliseconds(400);
    hangs_ = [this](int rank, const std::string& what) {
      const std::lock_guard lock(mutex_);
      hung_[rank] = what;
      changed_.notify_all();
    };
  }

  void body(const Hanging& one, Communicator& comm, const ThreadDevice& device) {
    const auto array = array_of(comm, device, whole_numbers(comm.rank(), kCount));
    const std::jthread asks([&] { hear(comm); });
    const auto first = comm.all_reduce(array.array());
    first->wait();
    (void)first->timing();
    comm.barrier();
    if (comm.rank() != 0) return;
    if (one.abort) library_.hang(0, "ncclCommAbort", gate_);
    if (one.call) library_.hang(0, "ncclAllReduce", gate_);
    if (one.query) {
      const std::lock_guard lock(mutex_);
      queries_ = device.queries();
    }
    if (one.query && one.call) queries_->shut();
    (void)comm.all_reduce(array.array());
    if (!one.query) return;
    queries_->shut();
    queries_->wait_for_one();  // the watch
    try {
      (void)comm.all_reduce(array.array());  // waits for the watch's query, and is told meanwhile
    } catch (const base::Error& error) {
      tell(error.what());
    }
  }

  void hear(const Communicator& comm) {
    const auto until = base::Clock::now() + deadline_ + kEnd;
    std::string text = "nobody has said anything";
    while (base::Clock::now() < until) try {
        comm.check();
        std::this_thread::sleep_for(milliseconds(1));
      } catch (const base::Error& error) {
        text = error.what();
        break;
      }
    tell(text);
  }
  void tell(const std::string& text) {
    const std::lock_guard lock(mutex_);
    told_.push_back(text);
    changed_.notify_all();
  }

  /// What all threads are told, in any order, while `run` runs the body on all ranks.
  std::vector<std::string> told(const Hanging& one, std::size_t ranks, const std::function<void()>& run) {
    told_.clear();
    hung_.clear();
    gate_.shut();
    // In the start nobody can ask yet: the host's communicator is told.
    const std::size_t threads = one.start ? 1 : ranks + (one.query && !one.call ? 1 : 0);
    if (one.start)
      for (std::size_t rank = 0; rank < ranks; ++rank)
        library_.hang(static_cast<int>(rank), "ncclCommInitRankConfig", gate_);
    const std::jthread opens([&] {
      std::unique_lock lock(mutex_);
      const auto is_known = [&] {
        return told_.size() == threads && hung_.contains(0) && (!one.start || hung_.size() == ranks);
      };
      EXPECT_TRUE(changed_.wait_for(lock, 2 * kEnd, is_known)) << told_.size() << " of " << threads;
      gate_.open();
      if (queries_ != nullptr) queries_->open();
      queries_.reset();
    });
    run();
    return told_;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> told_;
  std::map<int, std::string> hung_;
  Gate gate_;
  std::shared_ptr<Gate> queries_;
};

const Hanging kCases[] = {
    {.name = "the abort", .abort = true, .said = "all_reduce 2 of 1000 floats is not complete 400 ms after"},
    {.name = "a query", .query = true},
    {.name = "a query, then the abort", .query = true, .abort = true},
    {.name = "the call of a collective",
     .call = true,
     .said = "ncclAllReduce does not return, in all_reduce 2 of 1000 floats, 800 ms after it began "
             "\\(--deadline 400 ms\\)"},
    {.name = "the call of a collective and a query", .call = true, .query = true},
    {.name = "the call of a collective, then the abort", .call = true, .abort = true},
};

TEST_F(NcclHangs, EveryRankIsToldWithinTheDeadlineAndTenSeconds) {
  for (const int ranks : {2, 4})
    for (const auto& one : kCases) {
      SCOPED_TRACE(fmt::format("{} ranks: {}", ranks, one.name));
      library_.forget_gates();
      const auto told = this->told(one, static_cast<std::size_t>(ranks), [&] {
        (void)on_devices(ranks, [&](Communicator& comm, const base::Memory& device) {
          body(one, comm, dynamic_cast<const ThreadDevice&>(device));
        });
      });
      EXPECT_THAT(told, Each(AllOf(HasSubstr(fmt::format("nccl: rank 0 of {} (device 0): ", ranks)),
                                   ContainsRegex(one.said))));
      EXPECT_THAT(hung_[0], AllOf(HasSubstr(fmt::format("nccl: rank 0 of {} (device 0): ", ranks)),
                                  HasSubstr(" does not return, in all_reduce 2 of 1000 floats")));
      if (HasFailure()) return;  // the other cases would wait as long
    }
}

TEST_F(NcclHangs, TheAbortEndsACallThatBlocks) {
  is_blocking_ = true;
  hangs_ = [](int, const std::string&) {};
  for (const int ranks : {2, 4}) {
    SCOPED_TRACE(ranks);
    library_.block_until_aborted(-1, "");
    const auto errors = on_devices(ranks, [this](Communicator& comm, const base::Memory& device) {
      const auto array = array_of(comm, device, whole_numbers(comm.rank(), kCount));
      const auto first = comm.all_reduce(array.array());
      first->wait();
      (void)first->timing();
      comm.barrier();
      if (comm.rank() == 0) {
        library_.block_until_aborted(0, "ncclAllReduce");
        (void)comm.all_reduce(array.array());
      }
      comm.barrier();
    });
    EXPECT_THAT(
        errors,
        Each(AllOf(HasSubstr(fmt::format("nccl: rank 0 of {} (device 0): ncclAllReduce does not return, in "
                                         "all_reduce 2 of 1000 floats, 800 ms after it began",
                                         ranks)),
                   HasSubstr("read what the other ranks report, or give a longer --deadline"))));
  }
}

TEST_F(NcclHangs, ABlockingStartThatHangsIsTold) {
  is_blocking_ = true;
  for (const int ranks : {2, 4}) {
    SCOPED_TRACE(ranks);
    library_.forget_gates();
    const Hanging one{.name = "the start", .start = true};
    failed_ = [this](const std::string& text, base::ErrorKind) { tell(text); };
    const auto told = this->told(one, static_cast<std::size_t>(ranks), [&] {
      (void)on_devices(ranks, [&](Communicator& comm, const base::Memory& device) {
        body(one, comm, dynamic_cast<const ThreadDevice&>(device));
      });
    });
    EXPECT_THAT(told,
                Each(ContainsRegex(fmt::format(
                    "nccl: rank [0-3] of {} \\(device [0-3]\\): the start, ncclCommInitRankConfig, is not "
                    "complete 400 ms after it began \\(--deadline\\): a rank has not entered it",
                    ranks))));
    EXPECT_THAT(hung_[0], HasSubstr("ncclCommInitRankConfig does not return, in the start"));
  }
}

TEST_F(NcclHangs, AStartThatDoesNotReturnIsToldToo) {
  for (const int ranks : {2, 4}) {
    SCOPED_TRACE(ranks);
    const Hanging one{.name = "the start", .start = true};
    failed_ = [this](const std::string& text, base::ErrorKind) { tell(text); };
    const auto told = this->told(one, static_cast<std::size_t>(ranks), [&] {
      (void)on_devices(ranks, [&](Communicator& comm, const base::Memory& device) {
        body(one, comm, dynamic_cast<const ThreadDevice&>(device));
      });
    });
    EXPECT_THAT(told, Each(ContainsRegex(fmt::format(
                          "nccl: rank [0-3] of {} \\(device [0-3]\\): ncclCommInitRankConfig does not "
                          "return, in the start, 800 ms after it began ",
                          ranks))));
  }
}

TEST_F(NcclHangs, ACallThatReturnsBeforeItsDeadlineIsNone) {
  hangs_ = [](int, const std::string& what) { ADD_FAILURE() << what; };
  deadline_ = milliseconds(1000);
  gate_.shut();
  library_.hang(0, "ncclAllReduce", gate_);
  const auto errors = on_devices(2, [this](Communicator& comm, const base::Memory& device) {
    const auto array = array_of(comm, device, whole_numbers(comm.rank(), kCount));
    comm.barrier();
    std::jthread opens;
    if (comm.rank() == 0)
      opens = std::jthread([this] {
        std::this_thread::sleep_for(milliseconds(500));
        gate_.open();
      });
    comm.all_reduce(array.array())->wait();
    EXPECT_EQ(read(array.array()), sum_of_whole_numbers(2, kCount));
  });
  EXPECT_THAT(errors, Each(""));
}

TEST_F(NcclHangs, RanksOfOtherProcessesAreToldToo) {
  constexpr int kProcesses = 2, kEach = 2, kRanks = kProcesses * kEach;
  for (const auto& one : kCases) {
    SCOPED_TRACE(one.name);
    library_.forget_gates();
    std::vector<std::unique_ptr<ThreadDevice>> devices;
    for (int rank = 0; rank < kRanks; ++rank)
      devices.push_back(std::make_unique<ThreadDevice>(std::to_string(rank)));
    const auto told = this->told(one, kRanks, [&] {
      (void)on_processes(
          kProcesses, kEach, {.shared_memory = false},
          [&](Communicator& comm) { body(one, comm, *devices[static_cast<std::size_t>(comm.rank())]); },
          [this](auto joined) {
            return around(host_staging(std::move(joined)),
                          {.open = open_, .deadline = deadline_, .hangs = [this](const std::string& what) {
                             hangs_(0, what);
                           }});
          });
    });
    EXPECT_THAT(told, Each(AllOf(HasSubstr("nccl: rank 0 of 4 (device 0): "), ContainsRegex(one.said))));
    EXPECT_EQ(library_.misuse(), "");
    EXPECT_EQ(library_.living_comms(), 0);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace paceline::comm::nccl

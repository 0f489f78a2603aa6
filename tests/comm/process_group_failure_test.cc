/// Between processes, who is named that gives up, hangs, or comes too late to a collective or to the end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "base/error.h"
#include "comm/on_processes.h"

namespace paceline::comm {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ProcessesFailure, AnErrorOfOneRankIsToldToAllAndSaidOnce) {
  const auto outcome = on_processes(3, 2, {}, [&](Communicator& comm) {
    if (comm.rank() == 3) throw std::runtime_error("the disk is full");
    std::vector<float> values(1000);
    while (true) comm.all_reduce(values)->wait();
  });
  EXPECT_EQ(outcome.errors[3], "the disk is full");
  for (const int rank : {0, 1, 2, 4, 5})
    EXPECT_THAT(outcome.errors[static_cast<std::size_t>(rank)],
                AllOf(HasSubstr("rank 3 gave up"), HasSubstr("the disk is full")));
  EXPECT_THAT(outcome.said, ::testing::ElementsAre(HasSubstr("rank 3 gave up: the disk is full")));
}

TEST(ProcessesFailure, WhoComesTooLateIsNamedWithItsPlace) {
  for (const bool shared : {false, true}) {
    const auto begin = base::Clock::now();
    ProcessGroupOptions options{.deadline = std::chrono::seconds(2), .shared_memory = shared};
    options.watch.beat = milliseconds(50);
    const auto outcome = on_processes(3, 1, options, [&](Communicator& comm) {
      comm.at(7, "backward");
      comm.barrier();
      if (comm.rank() == 1) std::this_thread::sleep_for(milliseconds(3500));
      comm.barrier();
    });
    EXPECT_LT(base::seconds_since(begin), 15.0);
    for (const int rank : {0, 2})
      EXPECT_THAT(outcome.errors[static_cast<std::size_t>(rank)],
                  AllOf(HasSubstr("rank 1 "), HasSubstr("did not enter a barrier within 2 s")));
    EXPECT_NE(outcome.errors[1], "");
  }
}

TEST(ProcessesFailure, OfAProcessOfSeveralRanksTheOneIsNamedThatKeepsTheOthersWaiting) {
  ProcessGroupOptions options{.shared_memory = false};
  options.watch.beat = milliseconds(50);
  options.watch.held_up = milliseconds(600);
  const auto outcome = on_processes(2, 2, options, [](Communicator& comm) {
    std::vector<float> values(10);
    comm.at(97, comm.rank() == 3 ? "waiting for data" : "backward");
    comm.barrier();
    if (comm.rank() == 3) std::this_thread::sleep_for(milliseconds(2500));
    comm.all_reduce(values)->wait();
  });
  EXPECT_THAT(outcome.said, ::testing::ElementsAre(
                                AllOf(HasSubstr("the others have waited"), HasSubstr("for rank 3 on host"),
                                      HasSubstr("(last in waiting for data of step 97)"))));
}

/// The memory of those who have given up is gone by the time that the late one comes.
TEST(ProcessesFailure, WhoComesTooLateToASumInCommonMemoryIsNamed) {
  ProcessGroupOptions options{.deadline = std::chrono::seconds(2)};
  options.watch.beat = milliseconds(50);
  const auto outcome = on_processes(3, 1, options, [&](Communicator& comm) {
    comm.at(7, "backward");
    base::Buffer memory = comm.memory(200'000);
    EXPECT_NE(comm.algorithm().find("direct"), std::string::npos);
    const auto values = memory.as<float>();
    for (int turn = 0; turn < 4; ++turn) {
      if (comm.rank() == 1 && turn == 3) std::this_thread::sleep_for(milliseconds(3500));
      comm.all_reduce(values)->wait();
    }
  });
  for (const int rank : {0, 2})
    EXPECT_THAT(
        outcome.errors[static_cast<std::size_t>(rank)],
        AllOf(HasSubstr("rank 1 "), HasSubstr("did not enter an all-reduce of 50000 floats within 2 s")));
  EXPECT_NE(outcome.errors[1], "");
}

/// A thread that hangs while it waits: its process says that it waits, and so do all others.
class HangingWire final : public FakeWire {
 public:
  HangingWire(const std::shared_ptr<FakeNetwork>& network, int process, bool has_given,
              std::function<bool()> hangs)
      : FakeWire(network, process), has_given_(has_given), hangs_(std::move(hangs)) {}
  std::vector<int> swap(Channel channel, std::span<const Send> sends, std::span<const Receive> receives,
                        const std::function<bool()>& keep_waiting) override {
    if (!hangs_()) return FakeWire::swap(channel, sends, receives, keep_waiting);
    // As gloo's, whose guard looks for a thread that sleeps: the others go on with what they have got.
    if (has_given_) (void)FakeWire::swap(channel, sends, receives, keep_waiting);
    (void)keep_waiting();
    while (hangs_()) {
      std::this_thread::sleep_for(milliseconds(5));
      if (has_given_) (void)keep_waiting();
    }
    if (has_given_) return {};
    return FakeWire::swap(channel, sends, receives, keep_waiting);
  }

 private:
  bool has_given_;
  std::function<bool()> hangs_;
};

TEST(ProcessesFailure, AThreadThatHangsInItsWaitIsNamedWhereAllWait) {
  for (const bool has_given : {false, true}) {
    const auto network = std::make_shared<FakeNetwork>(3);
    std::mutex mutex;
    std::vector<std::string> said;
    std::atomic<bool> has_met{false};
    const auto begin = base::Clock::now();
    const auto hangs = [&] {
      const std::lock_guard lock(mutex);
      return has_met && said.empty() && base::seconds_since(begin) < 20;
    };
    const auto run = [&](int process) {
      HangingWire wire(network, process, has_given, [&, process] { return process == 1 && hangs(); });
      ProcessGroupOptions options{.shared_memory = false};
      options.watch.beat = milliseconds(50);
      options.watch.held_up = milliseconds(300);
      ProcessGroup joined(wire, options, [&](const std::string& text) {
        const std::lock_guard lock(mutex);
        said.push_back(text);
      });
      joined.at(7, "backward");
      joined.barrier();
      if (process == 1) has_met = true;
      for (int again = 0; again < 3; ++again) joined.barrier();
    };
    std::vector<std::thread> threads;
    for (int process = 0; process < 3; ++process) threads.emplace_back(run, process);
    for (auto& thread : threads) thread.join();
    EXPECT_THAT(said,
                ::testing::ElementsAre(AllOf(HasSubstr("the others have waited"), HasSubstr("rank 1 on host"),
                                             HasSubstr("(last in backward of step 7)"))));
  }
}

/// The end of a run: process 0 has files to write for longer than anybody is waited for in a collective.
TEST(ProcessGroup, PartWhenTheFirstIsThroughAndNameWhoDoesNotCome) {
  for (const bool all_come : {true, false}) {
    const auto network = std::make_shared<FakeNetwork>(3);
    std::vector<std::string> errors(3);
    std::vector<double> seconds(3);
    const auto begin = base::Clock::now();
    const auto run = [&](int process) {
      FakeWire wire(network, process);
      ProcessGroupOptions options{.deadline = std::chrono::seconds(1), .shared_memory = false};
      options.watch.beat = milliseconds(50);
      ProcessGroup joined(wire, options, {});
      if (process == 0) std::this_thread::sleep_for(milliseconds(1800));
      if (process == 2 && !all_come) std::this_thread::sleep_for(milliseconds(5000));
      try {
        EXPECT_EQ(joined.leave(process == 1 ? 15 : 2), 15);
        EXPECT_EQ(joined.leave(2), 15) << "a second call exchanges nothing";
      } catch (const base::Error& error) {
        errors[static_cast<std::size_t>(process)] = error.what();
      }
      seconds[static_cast<std::size_t>(process)] = base::seconds_since(begin);
    };
    std::vector<std::thread> threads;
    for (int process = 0; process < 3; ++process) threads.emplace_back(run, process);
    for (auto& thread : threads) thread.join();
    EXPECT_GE(seconds[1], 1.8) << "its end would have ended the first one's writing";
    for (const std::size_t process : {0u, 1u}) {
      if (all_come)
        EXPECT_EQ(errors[process], "");
      else
        EXPECT_THAT(errors[process], AllOf(HasSubstr("rank 2"), HasSubstr("did not enter")));
    }
  }
}

}  // namespace
}  // namespace paceline::comm

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "base/clock.h"
#include "base/process.h"
#include "base/text.h"
#include "comm/failure/probes.h"

namespace paceline::comm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Launch launch_of(int local, int locals, int processes) {
  return {.by = "a test",
          .process = local,
          .processes = processes,
          .job = fmt::format("attendance test {}", ::getpid()),
          .local = local,
          .locals = locals,
          .meeting_host = {}};
}

TEST(StartupProbe, TheLowestThatIsThereNamesWhoHasNotBegun) {
  const StartupProbe zero(launch_of(0, 4, 4));
  EXPECT_THAT(zero.absent(), ElementsAre(HasSubstr("process 1 on host"), HasSubstr("process 2 on host"),
                                         HasSubstr("process 3 on host")));
  const StartupProbe two(launch_of(2, 4, 4));
  EXPECT_THAT(zero.absent(), ElementsAre(HasSubstr("process 1 on host"), HasSubstr("process 3 on host")));
  EXPECT_THAT(two.absent(), IsEmpty()) << "the lowest says it";
  const StartupProbe one(launch_of(1, 4, 4));
  {
    const StartupProbe three(launch_of(3, 4, 4));
    EXPECT_THAT(zero.absent(), IsEmpty());
  }
  EXPECT_THAT(zero.absent(), ElementsAre(HasSubstr("has not begun"))) << "its mark went with it";
}

TEST(StartupProbe, OnOneOfSeveralHostsItsNumberThereIsAllThatIsKnown) {
  const StartupProbe one(launch_of(1, 2, 4));
  EXPECT_THAT(one.absent(), ElementsAre(HasSubstr("the process with local rank 0 on host")));
}

TEST(StartupProbe, WithoutALaunchersWordNobodyIsMissed) {
  auto launch = launch_of(0, 0, 4);
  EXPECT_THAT(StartupProbe(launch).absent(), IsEmpty());
  launch = launch_of(0, 4, 4);
  launch.job.clear();
  EXPECT_THAT(StartupProbe(launch).absent(), IsEmpty());
}

TEST(StartupProbe, WhoIsStoppedIsNamedWithItsProcessId) {
  const pid_t child = ::fork();
  auto launch = launch_of(0, 2, 2);
  launch.job = "attendance test, stopped " + std::to_string(child == 0 ? ::getpid() : child);
  if (child == 0) {
    const StartupProbe zero(launch);
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  while (base::state_of_process(child) != 'T') std::this_thread::sleep_for(std::chrono::milliseconds(2));
  launch.process = launch.local = 1;
  const StartupProbe one(launch);
  EXPECT_THAT(one.absent(), ElementsAre(HasSubstr(fmt::format("(pid {}) is stopped", child))));
  ::kill(child, SIGKILL);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_THAT(one.absent(), ElementsAre(HasSubstr("has not begun")));
  EXPECT_EQ(base::state_of_process(child), '\0');
}

/// A child, which is gone when this is.
class Child {
 public:
  template <typename Body>
  explicit Child(const Body& body) : process_(::fork()) {
    if (process_ != 0) return;
    body();
    ::_exit(0);
  }
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  [[nodiscard]] pid_t process() const { return process_; }
  void end() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }

 private:
  pid_t process_;
};

/// Two children of which one looks for the others now and then, as MPI does, and one hangs in a call.
TEST(StartupProbe, WhoseFirstThreadHasNotRunDoesNothing) {
  const auto job = "attendance test, idle " + std::to_string(::getpid());
  if (!base::ran_for_ns(::getpid())) GTEST_SKIP() << "the system does not tell how long a thread has run";
  const auto attending = [&](int local, const auto& body) {
    return [&job, local, body] {
      auto launch = launch_of(local, 3, 3);
      launch.job = job;
      const StartupProbe mine(launch);
      body();
    };
  };
  const Child hangs(attending(0, [] { ::pause(); }));
  Child waits(attending(1, [] {
    while (true) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }));
  auto launch = launch_of(2, 3, 3);
  launch.job = job;
  const StartupProbe here(launch);
  const auto have_run = [&] {  // what a child has run for is told a moment after it began
    const auto cpu_times = here.cpu_times();
    return here.absent().empty() && cpu_times[0] && cpu_times[1];
  };
  while (!have_run()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const auto seen_by_lowest = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // until the one that hangs does
    const auto before = here.cpu_times();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return here.absent(before);
  };
  EXPECT_THAT(seen_by_lowest(), IsEmpty()) << "the one that waits is lower, and says it";
  waits.end();
  EXPECT_THAT(seen_by_lowest(),
              ElementsAre(HasSubstr(fmt::format("process 0 on host {} (pid {}) does nothing",
                                                base::host_name(), hangs.process())),
                          HasSubstr("process 1 on host")));
}

}  // namespace

namespace {

TEST(SurvivorProbe, TheLowestThatAnswersIsFoundAndThoseBelowItAreMissing) {
  std::vector<std::unique_ptr<SurvivorProbe>> calls(5);
  std::vector<Address> addresses(5);
  for (std::size_t process = 1; process < calls.size(); ++process) {
    calls[process] = std::make_unique<SurvivorProbe>();
    addresses[process] = calls[process]->address();
  }
  for (const int process : {2, 4}) {
    const auto called = probe_survivors(process, addresses);
    EXPECT_EQ(called.lowest, 1);
    EXPECT_TRUE(called.missing.empty());
  }
  EXPECT_EQ(probe_survivors(1, addresses).lowest, 1) << "it has nobody to ask";
  EXPECT_TRUE(missing_above(1, addresses).empty());
  calls[1].reset();
  calls[2].reset();
  EXPECT_EQ(probe_survivors(4, addresses).lowest, 3);
  EXPECT_EQ(probe_survivors(4, addresses).missing, (std::vector<int>{1, 2}));
  EXPECT_EQ(probe_survivors(3, addresses).lowest, 3);
  EXPECT_EQ(probe_survivors(3, addresses).missing, (std::vector<int>{1, 2}));
  EXPECT_TRUE(missing_above(3, addresses).empty());
  calls[1] = std::make_unique<SurvivorProbe>();
  addresses[1] = calls[1]->address();
  calls[4].reset();
  EXPECT_EQ(probe_survivors(1, addresses).lowest, 1);
  EXPECT_EQ(missing_above(1, addresses), (std::vector<int>{2, 4})) << "process 3 is there";
}

TEST(SurvivorProbe, WhoIsStuckOrAStrangerIsMissingAfterAMoment) {
  Socket listener;
  std::vector<Address> addresses{
      {}, listen_anywhere(listener), {}};  // its backlog takes the question, nobody answers
  const SurvivorProbe stranger;
  addresses.push_back(stranger.address());
  addresses[2] = addresses[3];
  addresses[2].token ^= 1;  // it has come to a port that was another's
  const auto begin = base::Clock::now();
  const auto called = probe_survivors(4, addresses);
  EXPECT_EQ(called.lowest, 3);
  EXPECT_EQ(called.missing, (std::vector<int>{1, 2}));
  EXPECT_LT(base::seconds_since(begin), 5.0);
}

}  // namespace
}  // namespace paceline::comm

/// The memory that processes of one host share: what it is where there is none, and when it has a name.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "comm/on_processes.h"
#include "comm/values.h"

namespace paceline::comm {
namespace {

using std::chrono::milliseconds;

/// A host may have little memory to share: then what is given is each process's own, and nobody notices.
TEST(ProcessGroup, MemoryIsOrdinaryWhereThereIsNoneToShare) {
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const auto outcome = on_processes(3, 1, {}, [&](Communicator& comm) {
    comm.barrier();
    if (comm.rank() == 0) {
      const rlimit little{.rlim_cur = 100'000, .rlim_max = limit.rlim_max};
      EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
    }
    comm.barrier();
    base::Buffer memory = comm.memory(200'000);
    EXPECT_NE(comm.algorithm().find("staged"), std::string::npos);
    const auto values = memory.as<float>();
    std::ranges::copy(values_of(comm.rank(), values.size()), values.begin());
    comm.all_reduce(values)->wait();
    EXPECT_TRUE(same_bits({values.begin(), values.end()}, tree_of(3, values.size())));
  });
  EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  (void)std::signal(SIGXFSZ, before);
  for (const auto& error : outcome.errors) EXPECT_EQ(error, "");
}

/// Of memory under a name, which this process would leave behind if it were killed now.
std::vector<std::string> names_of_memory() {
  const auto mine = fmt::format("paceline-{}-", ::getpid());
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    if (const auto name = entry.path().filename().string(); name.starts_with(mine)) names.push_back(name);
  return names;
}

TEST(ProcessGroup, MemoryHasNoNameWhileSomebodyIsWaitedFor) {
  const auto outcome = on_processes(3, 1, {}, [&](Communicator& comm) {
    comm.barrier();
    if (comm.rank() == 1) {
      std::this_thread::sleep_for(milliseconds(300));
      EXPECT_THAT(names_of_memory(), ::testing::IsEmpty());
    }
    const base::Buffer memory = comm.memory(200'000);
    EXPECT_NE(comm.algorithm().find("direct"), std::string::npos);
    comm.barrier();
    EXPECT_THAT(names_of_memory(), ::testing::IsEmpty());
  });
  for (const auto& error : outcome.errors) EXPECT_EQ(error, "");
}

}  // namespace
}  // namespace paceline::comm

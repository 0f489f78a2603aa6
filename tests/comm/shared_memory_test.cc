#include "comm/shared_memory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

namespace paceline::comm {
namespace {

TEST(SharedMemory, IsZeroAtFirstAndOneForAllWhoOpenIt) {
  auto memory = SharedMemory::create(10'000);
  ASSERT_TRUE(memory) << "no room in /dev/shm";
  EXPECT_TRUE(std::ranges::all_of(memory->bytes(), [](std::byte byte) { return byte == std::byte{}; }));
  const auto other = SharedMemory::open(memory->name(), 10'000);
  ASSERT_TRUE(other);
  memory->bytes()[9'999] = std::byte{7};
  EXPECT_EQ(other->bytes()[9'999], std::byte{7});
  memory->remove_name();
  EXPECT_FALSE(SharedMemory::open(memory->name(), 10'000));
  other->bytes()[0] = std::byte{8};
  EXPECT_EQ(memory->bytes()[0], std::byte{8}) << "only the name is gone";
}

TEST(SharedMemory, ItsNameGoesWithItsCreatorAlone) {
  std::string name;
  {
    auto memory = SharedMemory::create(100);
    ASSERT_TRUE(memory);
    name = memory->name();
    { const auto other = SharedMemory::open(name, 100); }
    EXPECT_TRUE(SharedMemory::open(name, 100)) << "another's end takes nothing along";
    const SharedMemory moved = std::move(*memory);
    EXPECT_EQ(moved.bytes().size(), 100u);
  }
  EXPECT_FALSE(SharedMemory::open(name, 100));
}

TEST(SharedMemory, ThatIsMoreThanThereIsIsNotThere) {
  EXPECT_FALSE(SharedMemory::create(std::size_t{1} << 50));
  EXPECT_FALSE(SharedMemory::open("/paceline-of-nobody", 100));
}

/// Counts may wrap around after 2^32: they are compared by their difference.
TEST(Signal, IsComparedAcrossTheWrap) {
  Signal signal{};
  signal.raise(0xfffffff0u);
  EXPECT_TRUE(signal.has(0xfffffff0u));
  EXPECT_FALSE(signal.has(0xfffffff1u));
  EXPECT_FALSE(signal.has(3));
  signal.raise(3);
  EXPECT_TRUE(signal.has(3));
  EXPECT_TRUE(signal.has(0xfffffff1u));
  EXPECT_FALSE(signal.has(4));
}

TEST(Signal, WakesWhoSleepsInAnotherProcess) {
  auto memory = SharedMemory::create(2 * sizeof(Signal));
  ASSERT_TRUE(memory);
  auto* const signals = reinterpret_cast<Signal*>(memory->bytes().data());
  const pid_t child = ::fork();
  if (child == 0) {
    for (std::uint32_t turn = 1; turn <= 100; ++turn) {
      if (!wait(signals[0], turn, {}, [] { return true; })) ::_exit(1);
      signals[1].raise(turn);
    }
    ::_exit(0);
  }
  int asked = 0;
  for (std::uint32_t turn = 1; turn <= 100; ++turn) {
    signals[0].raise(turn);
    ASSERT_TRUE(wait(signals[1], turn, {.looks = turn % 2 == 0 ? 1000 : 0, .yields = 3}, [&] {
      return ++asked < 1000;
    })) << turn;
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Signal, IsWaitedForNoLongerThanItShallBe) {
  Signal signal{};
  signal.raise(4);
  int asked = 0;
  const auto keep = [&] { return ++asked < 3; };
  EXPECT_TRUE(wait(signal, 4, {}, keep));
  EXPECT_EQ(asked, 0);
  EXPECT_FALSE(wait(signal, 5, {.looks = 10, .yields = 10}, keep));
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(signal.sleepers, 0u) << "nobody is left counted in";
}

}  // namespace
}  // namespace paceline::comm

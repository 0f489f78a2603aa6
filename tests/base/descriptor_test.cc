#include "base/descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace paceline::base {
namespace {

bool is_open(int number) { return ::fcntl(number, F_GETFD) >= 0; }

Descriptor opened() { return Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

TEST(Descriptor, ClosesWhatItOwnsOnce) {
  int number = -1;
  {
    const auto file = opened();
    number = file.get();
    EXPECT_TRUE(file.is_open() && is_open(number));
  }
  EXPECT_FALSE(is_open(number));
  auto closed = opened();
  number = closed.get();
  closed.close();
  EXPECT_FALSE(closed.is_open() || is_open(number));
}

TEST(Descriptor, LeavesWhatItHasPassedOn) {
  auto from = opened();
  const int number = from.get();
  Descriptor to = std::move(from);
  EXPECT_EQ(to.get(), number);
  auto other = opened();
  const int replaced = other.get();
  other = std::move(to);
  to.close();
  EXPECT_FALSE(is_open(replaced)) << "what it owned before";
  EXPECT_EQ(other.release(), number);
  EXPECT_FALSE(other.is_open());
  EXPECT_TRUE(is_open(number));
  ::close(number);
}

TEST(Descriptor, KeepsTheErrorOfACall) {
  {
    const auto file = opened();
    errno = ENOSPC;
  }
  EXPECT_EQ(errno, ENOSPC);
}

TEST(NoSigpipe, TurnsTheSignalIntoAnError) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  Descriptor reader(ends[0]);
  const Descriptor writer(ends[1]);
  reader.close();
  ssize_t written = 0;
  {
    const NoSigpipe no_signal;
    written = ::write(writer.get(), "x", 1);
  }
  EXPECT_EQ(written, -1);
  EXPECT_EQ(errno, EPIPE);
  sigset_t pending;
  ::sigpending(&pending);
  EXPECT_EQ(::sigismember(&pending, SIGPIPE), 0);
}

}  // namespace
}  // namespace paceline::base

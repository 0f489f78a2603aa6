#include "base/line_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <thread>

namespace paceline::base {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

class Pipe {
 public:
  Pipe() { EXPECT_EQ(::pipe2(ends_.data(), O_CLOEXEC), 0); }
  ~Pipe() {
    close_reader();
    close_writer();
  }
  [[nodiscard]] int writer() const { return ends_[1]; }
  void close_reader() { close(0); }
  void close_writer() { close(1); }
  /// Everything until the last writer has closed it, which may be another process.
  [[nodiscard]] std::string read_all() const {
    std::string all;
    std::array<char, 4096> piece{};
    for (ssize_t bytes = 0; (bytes = ::read(ends_[0], piece.data(), piece.size())) > 0;)
      all.append(piece.data(), static_cast<std::size_t>(bytes));
    return all;
  }

 private:
  void close(std::size_t end) {
    if (ends_[end] >= 0) ::close(ends_[end]);
    ends_[end] = -1;
  }
  std::array<int, 2> ends_{-1, -1};
};

std::string line_of(int number) { return fmt::format("line {:06} of a run that goes on\n", number); }

/// The lines of `text` that are in it once each, in order; checks that the others are counted where they are
/// missing.
int check_lines(const std::string& text, int all) {
  int next = 0, there = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = text.find('\n', at);
    const auto line = text.substr(at, end - at + 1);
    if (line.starts_with('(')) {
      EXPECT_THAT(line, HasSubstr("left out here"));
      next += std::stoi(line.substr(1));
    } else {
      EXPECT_EQ(line, line_of(next));
      ++next;
      ++there;
    }
    at = end + 1;
  }
  EXPECT_EQ(next, all);
  return there;
}

TEST(LineOutput, DoesNotWaitForItsReader) {
  constexpr int kLines = 20'000;  // 700 kB: more than the pipe and the waiting lines
  Pipe pipe;
  auto output = std::make_unique<LineOutput>(pipe.writer(), std::size_t{16} << 10);
  for (int number = 0; number < kLines; ++number) output->write(line_of(number));  // would wait for ever
  std::string text;
  std::thread reader([&] { text = pipe.read_all(); });
  output.reset();
  pipe.close_writer();
  reader.join();
  EXPECT_THAT(text, EndsWith(line_of(kLines - 1)));
  EXPECT_LT(check_lines(text, kLines), kLines);
}

TEST(LineOutput, WritesAllToWhoReads) {
  constexpr int kLines = 3000;
  Pipe pipe;
  std::string text;
  std::thread reader([&] { text = pipe.read_all(); });
  {
    LineOutput output(pipe.writer());
    for (int number = 0; number < kLines; ++number) output.write(line_of(number));
  }
  pipe.close_writer();
  reader.join();
  EXPECT_EQ(check_lines(text, kLines), kLines);
}

TEST(LineOutput, KeepsTheLastLinesForLater) {
  for (const bool is_full : {false, true}) {
    Pipe pipe;
    std::size_t before = 0;
    if (is_full) {  // by another process that shares it: nothing can be written before the end
      ASSERT_EQ(::fcntl(pipe.writer(), F_SETFL, O_NONBLOCK), 0);
      const std::string block(512, 'x');
      for (ssize_t bytes = 0; (bytes = ::write(pipe.writer(), block.data(), block.size())) > 0;)
        before += static_cast<std::size_t>(bytes);
      ASSERT_EQ(::fcntl(pipe.writer(), F_SETFL, 0), 0);
    }
    constexpr int kLines = 1000;  // 34 kB: more than half of the pipe
    {
      LineOutput output(pipe.writer());
      for (int number = 0; number < kLines; ++number) output.write(line_of(number));
    }  // nobody has read yet
    pipe.close_writer();
    EXPECT_EQ(check_lines(pipe.read_all().substr(before), kLines), kLines) << is_full;
  }
}

TEST(LineOutput, LeavesNoLockOfItsCallerBehind) {
  Pipe pipe, lock;  // its writer is inherited, as the lock of `flock FILE paceline ...`
  ASSERT_EQ(::fcntl(lock.writer(), F_SETFD, 0), 0);
  const std::string text(200'000, 'x');  // more than a pipe takes
  leave_to_cat(pipe.writer(), text);
  pipe.close_writer();
  lock.close_writer();
  EXPECT_EQ(lock.read_all(), "") << "would wait for as long as nobody reads the text";
  EXPECT_EQ(pipe.read_all(), text);
}

TEST(LineOutput, LeavesHalfOfAPipeToOthers) {
  Pipe pipe;
  LineOutput output(pipe.writer());
  for (int number = 0; number < 20'000; ++number) output.write(line_of(number));
  const std::string message(4096, 'm');
  EXPECT_EQ(write_within(pipe.writer(), message, std::chrono::seconds(20)), message.size());
  pipe.close_reader();
}

TEST(LineOutput, OutlivesItsReader) {
  Pipe pipe;
  LineOutput output(pipe.writer());
  output.write(line_of(0));
  pipe.close_reader();
  for (int number = 1; number < 5000; ++number) output.write(line_of(number));  // no SIGPIPE
  const std::string text(100'000, 'x');
  EXPECT_EQ(write_within(pipe.writer(), text, std::chrono::seconds(20)), text.size());
}

TEST(LineOutput, GoesOnWhereATerminalWasStopped) {
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0 || ::grantpt(master) != 0 || ::unlockpt(master) != 0) GTEST_SKIP() << "no terminals here";
  const int terminal = ::open(::ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(terminal, 0);
  ASSERT_TRUE(has_reader(terminal));
  ASSERT_EQ(::tcflow(terminal, TCOOFF), 0);  // Ctrl-S
  auto output = std::make_unique<LineOutput>(terminal);
  for (int number = 0; number < 5000; ++number) output->write(line_of(number));
  EXPECT_EQ(write_within(terminal, "late\n", std::chrono::milliseconds(1)), 0u);
  ASSERT_EQ(::tcflow(terminal, TCOON), 0);  // Ctrl-Q
  std::string text;
  std::array<char, 4096> piece{};
  while (text.find("line 004999 of a run that goes on") == std::string::npos) {
    const auto bytes = ::read(master, piece.data(), piece.size());
    ASSERT_GT(bytes, 0);
    text.append(piece.data(), static_cast<std::size_t>(bytes));
  }
  std::erase(text, '\r');
  EXPECT_EQ(check_lines(text, 5000), 5000);
  output.reset();
  ::close(terminal);
  ::close(master);
}

TEST(LineOutput, DrawsOnlyTheLastOfSeveral) {
  Pipe pipe;
  std::optional<LineOutput> output(pipe.writer());
  for (int number = 0; number < 20'000; ++number) output->write(line_of(number));  // from now on they wait
  for (int percent = 0; percent < 100; ++percent) output->draw(fmt::format("\r{} %", percent));
  output->write("done\n");
  std::string text;
  std::thread reader([&] { text = pipe.read_all(); });
  output.reset();
  pipe.close_writer();
  reader.join();
  EXPECT_THAT(text, EndsWith("\r99 %done\n"));
  EXPECT_EQ(std::ranges::count(text, '\r'), 1);
}

TEST(LineOutput, KnowsWhatHasAReader) {
  const Pipe pipe;
  EXPECT_TRUE(has_reader(pipe.writer()));
  for (const char* path : {"/dev/null", "/dev/full", "/proc/self/status"}) {
    const int file = ::open(path, O_RDONLY | O_CLOEXEC);
    EXPECT_FALSE(has_reader(file)) << path;
    ::close(file);
  }
}

}  // namespace
}  // namespace paceline::base

#include "cluster/passed_output.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>
#include <utility>

#include "cluster/child.h"

namespace paceline::cluster {
namespace {

/// While it exists, standard output and standard error of this process go to a pipe.
class OutputToPipe {
 public:
  OutputToPipe() : saved_{::dup(STDOUT_FILENO), ::dup(STDERR_FILENO)} {
    std::fflush(stdout);
    EXPECT_EQ(::pipe2(ends_.data(), O_CLOEXEC), 0);
    for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) ::dup2(ends_[1], descriptor);
    ::close(ends_[1]);
  }
  ~OutputToPipe() {
    restore();
    if (ends_[0] >= 0) ::close(ends_[0]);
  }
  void close_reader() { ::close(std::exchange(ends_[0], -1)); }
  void restore() {
    std::fflush(stdout);
    for (int descriptor = 1; auto& saved : saved_) {
      if (saved >= 0) ::dup2(saved, descriptor);
      if (saved >= 0) ::close(std::exchange(saved, -1));
      ++descriptor;
    }
  }
  [[nodiscard]] std::string read_all() const {
    std::string all;
    std::array<char, 4096> piece{};
    for (ssize_t bytes = 0; (bytes = ::read(ends_[0], piece.data(), piece.size())) > 0;)
      all.append(piece.data(), static_cast<std::size_t>(bytes));
    return all;
  }

 private:
  std::array<int, 2> saved_, ends_{};
};

int code_of(const std::string& script) {
  const StopRequest stop;
  const PassedOutput output;
  return run_line({"sh", "-c", script}, stop, std::chrono::seconds(5), &output).code;
}

constexpr const char* kManyLines =
    "echo first; i=0; while [ $i -lt 9000 ]; do echo 0123456789; i=$((i+1)); done; echo last >&2; exit 7";

TEST(PassedOutput, PassesLinesOnInTheirOrder) {
  OutputToPipe here;
  const int code = code_of("echo one; echo two >&2; printf three");
  here.restore();
  EXPECT_EQ(here.read_all(), "one\ntwo\nthree");
  EXPECT_EQ(code, 0);
}

TEST(PassedOutput, LetsALauncherOutliveItsReader) {
  OutputToPipe here;
  here.close_reader();
  const int code = code_of(kManyLines);
  here.restore();
  EXPECT_EQ(code, 7) << "not ended by SIGPIPE";
}

TEST(PassedOutput, ReadsForAReaderThatPauses) {
  OutputToPipe here;
  const int code = code_of(kManyLines);  // more than the pipe holds, and nobody reads yet
  here.restore();
  EXPECT_EQ(code, 7);
  const auto text = here.read_all();
  EXPECT_THAT(text, ::testing::StartsWith("first\n"));
  EXPECT_THAT(text, ::testing::EndsWith("\nlast\n"));
}

}  // namespace
}  // namespace paceline::cluster

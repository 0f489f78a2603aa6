#include "base/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <stdexcept>
#include <thread>

#include "base/error.h"

namespace paceline::base {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class File : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::path(::testing::TempDir()) /
        ("paceline_file_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator{}));
  }
  fs::path folder_;
};

TEST_F(File, ComesBackAsItWasWritten) {
  for (const std::size_t size : {0u, 1u, 65535u, 65536u, 200003u}) {
    std::string bytes(size, '\0');
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 % 256);
    write_file(folder_ / "a", bytes);
    EXPECT_EQ(read_file(folder_ / "a"), bytes);
  }
}

TEST_F(File, MakesMissingFolders) {
  write_file(folder_ / "x" / "y" / "z.json", "{}");
  EXPECT_EQ(read_file(folder_ / "x" / "y" / "z.json"), "{}");
}

TEST_F(File, WriterThatThrowsLeavesTheOldFileAndNothingElse) {
  write_file(folder_ / "a", "old");
  EXPECT_THROW(write_file(folder_ / "a",
                          [](const Sink& sink) {
                            const std::string piece = "new, but only half";
                            sink(std::as_bytes(std::span(piece)));
                            throw std::runtime_error("stopped");
                          }),
               std::runtime_error);
  EXPECT_EQ(read_file(folder_ / "a"), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(File, FullDiskLeavesTheOldFileAndSaysSo) {
  // A file-size limit fails a write just as a full disk does, with another reason. In a child: limits stay.
  write_file(folder_ / "a", "old");
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write_file(folder_ / "a", std::string(100000, 'n'));
    } catch (const Error& error) {
      const std::string text = error.what();
      const bool good = error.kind() == ErrorKind::data &&
                        text.find((folder_ / "a").string()) != std::string::npos &&
                        text.find("ulimit -f allows a file 4096 bytes") != std::string::npos &&
                        text.find("untouched") != std::string::npos;
      ::_exit(good ? 0 : 2);
    }
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(read_file(folder_ / "a"), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(File, MissingFileAndMissingFolderAreNamed) {
  try {
    (void)read_file(folder_ / "none");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_THAT(error.what(), HasSubstr((folder_ / "none").string()));
    EXPECT_THAT(error.what(), HasSubstr("No such file"));
  }
  write_file(folder_ / "plain", "x");
  EXPECT_THROW(write_file(folder_ / "plain" / "below", "x"), Error);  // a file where a folder is needed
}

TEST_F(File, AFifoIsReadOnceSomebodyWrites) {
  const auto fifo = folder_ / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    const int file = ::open(fifo.c_str(), O_WRONLY);
    for (const std::string_view part : {"lr = ", "0.1\n"}) {
      EXPECT_EQ(::write(file, part.data(), part.size()), static_cast<ssize_t>(part.size()));
      std::this_thread::sleep_for(std::chrono::milliseconds(60));  // the reader waits for the rest
    }
    ::close(file);
  });
  EXPECT_EQ(read_file(fifo), "lr = 0.1\n");
  writer.join();
}

TEST_F(File, AFifoThatNobodyWritesToIsAnErrorAfterAWhile) {
  const auto fifo = folder_ / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  try {
    (void)read_file(fifo);
    FAIL() << "read";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("it is a FIFO, and no program has written to it for 10 s"));
  }
}

}  // namespace
}  // namespace paceline::base

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/file.h"

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

TEST_F(File, LooksAtFilesAndFolders) {
  write_file(folder_ / "a", "");
  fs::create_symlink("a", folder_ / "link");
  fs::create_symlink("nothing", folder_ / "dangling");
  for (const char* name : {"a", "link"}) {
    EXPECT_TRUE(is_there(folder_ / name) && is_file(folder_ / name)) << name;
    EXPECT_FALSE(is_folder(folder_ / name)) << name;
  }
  EXPECT_TRUE(is_there(folder_) && is_folder(folder_));
  EXPECT_FALSE(is_file(folder_));
  for (const char* name : {"dangling", "missing", "a/below"})
    EXPECT_FALSE(is_there(folder_ / name) || is_file(folder_ / name) || is_folder(folder_ / name)) << name;
  EXPECT_EQ(entries_of(folder_).size(), 3u);
  EXPECT_TRUE(entries_of(folder_ / "missing").empty());
  EXPECT_TRUE(entries_of(folder_ / "a").empty());
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

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using testing::UnorderedElementsAre;

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

class ReplacementTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              ("paceline_replacement_" +
               std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_))
      found.push_back(entry.path().filename().string());
    return found;
  }
  /// A process that has begun to replace `path`, and still does when this returns.
  [[nodiscard]] static pid_t begin_in_child(const fs::path& path) {
    int ready[2];
    if (::pipe(ready) != 0) return -1;
    const pid_t child = ::fork();
    if (child == 0) {
      Replacement file(path);
      file.write(bytes("half"));
      (void)!::write(ready[1], "r", 1);
      for (;;) ::pause();
    }
    char byte = 0;
    (void)!::read(ready[0], &byte, 1);
    ::close(ready[0]);
    ::close(ready[1]);
    return child;
  }
  static void kill_child(pid_t child) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  fs::path folder_;
};

TEST_F(ReplacementTest, TakesItsPlaceWithCommitAndNotBefore) {
  write_file(folder_ / "a", "old");
  {
    Replacement file(folder_ / "a");
    file.write(bytes("new"));
    EXPECT_EQ(read_file(folder_ / "a"), "old");
    file.commit();
    EXPECT_EQ(read_file(folder_ / "a"), "new");
  }
  { Replacement given_up(folder_ / "a"); }
  EXPECT_EQ(read_file(folder_ / "a"), "new");
  EXPECT_THAT(names(), ElementsAre("a"));
}

TEST_F(ReplacementTest, RemovesWhatAKilledProcessLeft) {
  // Each used to stay: of every checkpoint in whose midst a job was killed, as large as the checkpoint.
  kill_child(begin_in_child(folder_ / "a"));
  kill_child(begin_in_child(folder_ / "a"));
  EXPECT_THAT(names(), SizeIs(1)) << "the second found the first's";
  write_file(folder_ / "a", "new");
  EXPECT_THAT(names(), ElementsAre("a"));
}

TEST_F(ReplacementTest, LeavesWhatALivingProcessWrites) {
  const pid_t child = begin_in_child(folder_ / "a");
  write_file(folder_ / "a", "new");
  EXPECT_THAT(names(), SizeIs(2));
  kill_child(child);
  write_file(folder_ / "a", "newer");
  EXPECT_THAT(names(), ElementsAre("a"));
}

TEST_F(ReplacementTest, LeavesWhatIsAnothersOrOfAnotherKind) {
  for (const char* other : {"b.paceline-partial-abcdef", "a.partial-backup", "a.paceline-partial-abcdefg",
                            "a.paceline-partial-abc", "xa.paceline-partial-abcdef"})
    write_file(folder_ / other, "x");
  write_file(folder_ / "a.paceline-partial-abcdef", "x");  // nobody holds it
  write_file(folder_ / "a", "new");
  EXPECT_THAT(names(), UnorderedElementsAre("a", "b.paceline-partial-abcdef", "a.partial-backup",
                                            "a.paceline-partial-abcdefg", "a.paceline-partial-abc",
                                            "xa.paceline-partial-abcdef"));
}

TEST_F(ReplacementTest, WorksWithoutAFolderInTheName) {
  const auto before = fs::current_path();
  fs::current_path(folder_);
  kill_child(begin_in_child("a"));
  write_file("a", "new");
  fs::current_path(before);
  EXPECT_THAT(names(), ElementsAre("a"));
}

TEST_F(ReplacementTest, FollowsLinksAndReplacesWhatTheyLeadTo) {
  // A link used to become the file, and what it led to stayed old.
  fs::create_directories(folder_ / "there");
  write_file(folder_ / "there" / "target", "old");
  fs::create_symlink("there/target", folder_ / "link");
  fs::create_symlink(folder_ / "link", folder_ / "link to link");
  kill_child(
      begin_in_child(folder_ / "link"));  // what it left stands beside the target, and goes with the next
  write_file(folder_ / "link to link", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link") && fs::is_symlink(folder_ / "link to link"));
  EXPECT_EQ(read_file(folder_ / "there" / "target"), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "there"), {}), 1);
}

TEST_F(ReplacementTest, MakesWhatADanglingLinkLeadsTo) {
  fs::create_symlink("target", folder_ / "link");
  write_file(folder_ / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read_file(folder_ / "target"), "new");
}

std::string error_of_writing(const fs::path& path, std::string_view text) {
  try {
    write_file(path, text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    return error.what();
  }
  return "written";
}

TEST_F(ReplacementTest, LinksInACircleAreAnError) {
  fs::create_symlink("b", folder_ / "a");
  fs::create_symlink("a", folder_ / "b");
  EXPECT_THAT(error_of_writing(folder_ / "a", "x"), HasSubstr(std::strerror(ELOOP)));
  EXPECT_THAT(names(), UnorderedElementsAre("a", "b"));
}

TEST_F(ReplacementTest, AFolderIsNotReplaced) {
  fs::create_directories(folder_ / "a");
  EXPECT_THAT(error_of_writing(folder_ / "a", "x"), HasSubstr(std::strerror(EISDIR)));
  EXPECT_THAT(names(), ElementsAre("a"));
}

TEST_F(ReplacementTest, AFifoIsWrittenInPlaceThroughALinkToo) {
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  fs::create_symlink("fifo", folder_ / "link");
  for (const char* name : {"fifo", "link"}) {
    const std::string sent(200003, 'x');  // more than a pipe holds
    std::string received;
    std::thread reader([&] { received = read_file(folder_ / "fifo"); });
    write_file(folder_ / name, sent);
    reader.join();
    EXPECT_EQ(received, sent) << name;
    EXPECT_TRUE(fs::is_fifo(folder_ / "fifo")) << name;
  }
  EXPECT_THAT(names(), UnorderedElementsAre("fifo", "link"));
}

TEST_F(ReplacementTest, AReaderThatGoesAwayIsAnErrorAndNotTheEndOfTheProcess) {
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  std::thread reader([&] {
    const int end = ::open((folder_ / "fifo").c_str(), O_RDONLY);
    char byte = 0;
    (void)!::read(end, &byte, 1);
    ::close(end);
  });
  const auto said = error_of_writing(folder_ / "fifo", std::string(1 << 20, 'x'));
  reader.join();
  EXPECT_THAT(said, HasSubstr((folder_ / "fifo").string() + ": cannot be written: " + std::strerror(EPIPE)));
  EXPECT_THAT(said, Not(HasSubstr("previous file"))) << "there is none";
  EXPECT_TRUE(fs::is_fifo(folder_ / "fifo"));
}

TEST_F(ReplacementTest, ASocketStaysWhatItIs) {
  const auto path = folder_ / "socket";
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  if (path.string().size() >= sizeof address.sun_path)
    GTEST_SKIP() << "the temporary folder's name is too long for a socket";
  std::strcpy(address.sun_path, path.c_str());
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_THAT(error_of_writing(path, "x"), HasSubstr(std::strerror(ENXIO)))
      << "sockets have no names to open";
  EXPECT_TRUE(fs::is_socket(path));
  ::close(socket);
}

/// A device node of the test's own, never the system's: what a fault breaks is then nobody else's.
bool make_device(const fs::path& path, unsigned minor) {
  if (::mknod(path.c_str(), S_IFCHR | 0600, makedev(1, minor)) != 0) return false;
  const int opened =
      ::open(path.c_str(), O_WRONLY);  // a file system mounted without devices makes, and refuses
  if (opened >= 0) ::close(opened);
  return opened >= 0;
}

TEST_F(ReplacementTest, ADeviceIsWrittenInPlaceAndItsErrorsAreSaid) {
  // `--html /dev/full`, as root, made a file of the device that all programs share.
  constexpr unsigned kNull = 3, kFull = 7;  // of the memory devices
  if (!make_device(folder_ / "null", kNull) || !make_device(folder_ / "full", kFull))
    GTEST_SKIP() << "no device can be made here: " << std::strerror(errno);
  write_file(folder_ / "null", "x");
  EXPECT_THAT(error_of_writing(folder_ / "full", "x"),
              HasSubstr((folder_ / "full").string() + ": cannot be written: " + std::strerror(ENOSPC)));
  for (const char* name : {"null", "full"}) EXPECT_TRUE(fs::is_character_file(folder_ / name)) << name;
  EXPECT_THAT(names(), UnorderedElementsAre("null", "full"));
}

// `--json /dev/stdout >> log` replaced the log: what it had held was gone.
TEST_F(ReplacementTest, ADescriptorsNameIsWrittenThere) {
  const auto log = folder_ / "log";
  write_file(log, "earlier\n");
  const int descriptor = ::open(log.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  ASSERT_GE(descriptor, 0);
  for (const char* where : {"/dev/fd/", "/proc/self/fd/"})
    write_file(where + std::to_string(descriptor), "now\n");
  ::close(descriptor);
  EXPECT_EQ(read_file(log), "earlier\nnow\nnow\n");
  EXPECT_THAT(names(), UnorderedElementsAre("log"));
}

TEST_F(ReplacementTest, KeepsTheModeOfWhatItReplaces) {
  write_file(folder_ / "a", "old");
  ASSERT_EQ(::chmod((folder_ / "a").c_str(), 0600), 0);
  write_file(folder_ / "a", "new");
  struct stat found {};
  ASSERT_EQ(::stat((folder_ / "a").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0600u);
}

}  // namespace
}  // namespace paceline::base

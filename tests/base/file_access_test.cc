/// Who can read what is written, whose links are followed, and what is read of files that others may have
/// made.

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/file.h"

namespace paceline::base {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class FileAccess : public ::testing::Test {
 protected:
  FileAccess() {
    std::string pattern = (fs::temp_directory_path() / "paceline-access-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~FileAccess() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(FileAccess, TheUmaskDecidesOnNewFiles) {
  const mode_t before = ::umask(0);
  for (const mode_t mask : {mode_t{0}, mode_t{002}, mode_t{022}, mode_t{077}}) {
    ::umask(mask);
    const auto file = folder_ / fmt::format("{:03o}", mask);
    write_file(file, "new");
    struct stat found {};
    ASSERT_EQ(::stat(file.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 07777, 0666u & ~mask);
  }
  ::umask(before);
}

TEST_F(FileAccess, PrivateFilesAreNeverOpenToOthers) {
  write_file(folder_ / "a", "old");
  ASSERT_EQ(::chmod((folder_ / "a").c_str(), 0600), 0);
  const mode_t before = ::umask(0);
  Replacement file(folder_ / "a");
  struct stat found {};
  ASSERT_EQ(::fstat(file.descriptor(), &found), 0);
  ::umask(before);
  EXPECT_EQ(found.st_mode & 077, 0u) << "nor while it is written";
}

TEST_F(FileAccess, AnotherUsersLinkIsNotFollowed) {
  write_file(folder_ / "precious", "mine");
  fs::permissions(folder_, fs::perms::all | fs::perms::sticky_bit);
  for (const char* target : {"precious", "new", "/dev/null"}) {
    const auto link = folder_ / "report.html";
    fs::remove(link);
    fs::create_symlink(target, link);
    constexpr uid_t kNobody = 65534;
    if (::lchown(link.c_str(), kNobody, kNobody) != 0)
      GTEST_SKIP() << "root alone can make another user's link";
    try {
      write_file(link, "a report");
      ADD_FAILURE() << "it was followed to " << target;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("is a symbolic link of another user (uid 65534)"));
    }
    fs::create_symlink("report.html", folder_ / "own");
    EXPECT_THROW(write_file(folder_ / "own", "a report"), Error) << "nor behind an own one";
    fs::remove(folder_ / "own");
  }
  EXPECT_EQ(read_file(folder_ / "precious"), "mine");
  EXPECT_FALSE(fs::exists(folder_ / "new"));
  // Nobody else can have put it into an ordinary directory, as of a container that mounts another user's
  // files.
  fs::permissions(folder_, fs::perms::owner_all);
  write_file(folder_ / "report.html", "a report");
}

TEST_F(FileAccess, NorOnTheWayToAnOutput) {
  const auto shared = folder_ / "tmp";
  fs::create_directories(shared);
  fs::create_directories(folder_ / "home" / "deep");
  fs::permissions(shared, fs::perms::all | fs::perms::sticky_bit);
  fs::create_symlink(folder_ / "home", shared / "evil");
  fs::create_symlink("tmp/evil", folder_ / "own");
  fs::create_symlink("evil/deep", shared / "mine");
  fs::create_symlink("not there", shared / "lost");
  for (const char* link : {"evil", "lost"})
    if (::lchown((shared / link).c_str(), 65534, 65534) != 0)
      GTEST_SKIP() << "root alone can make another user's link";
  for (const auto& path :
       {shared / "evil" / "run", shared / "evil" / "deep" / "run", shared / "evil" / "..",
        shared / "." / "evil" / "new" / "run", shared / "lost" / "run", shared / "mine" / "run",
        folder_ / "own" / "run", folder_ / "home" / ".." / "tmp" / "evil" / "run", shared / "evil" / ""}) {
    EXPECT_THROW((void)end_of_links(path), Error) << path;
    EXPECT_THROW(write_file(path, "x"), Error) << path;
    EXPECT_THROW(require_directory_of(path, "--html"), Error) << path;
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "home"), {}), 1) << "nothing was made there";
  // One's own links are followed, and so are all from the sticky directory's owner or in a directory that is
  // not everybody's.
  fs::create_symlink("../home/deep", shared / "good");
  write_file(shared / "good" / "new" / "run", "x");
  EXPECT_EQ(read_file(folder_ / "home" / "deep" / "new" / "run"), "x");
  fs::permissions(shared, fs::perms::owner_all);
  write_file(shared / "evil" / "run", "x");
  EXPECT_EQ(read_file(folder_ / "home" / "run"), "x");
}

TEST_F(FileAccess, RegularFilesAreReadAlone) {
  write_file(folder_ / "a", "0123456789");
  EXPECT_EQ(read_regular_file(folder_ / "a"), "0123456789");
  EXPECT_EQ(read_regular_file(folder_ / "a", 10), "0123456789");
  EXPECT_THROW((void)read_regular_file(folder_ / "a", 9), Error);
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  for (const char* other : {"fifo", "missing", "."})
    EXPECT_THROW((void)read_regular_file(folder_ / other), Error) << other;
  EXPECT_THROW((void)read_regular_file("/dev/null"), Error);
}

TEST_F(FileAccess, ASecretIsForItsOwnerAlone) {
  const auto file = folder_ / "secret";
  const auto write = [&](const std::string& text, mode_t mode) {
    write_file(file, text);
    ASSERT_EQ(::chmod(file.c_str(), mode), 0);
  };
  for (const char* text : {"0123456789abcdef", "0123456789abcdef\n", "0123456789abcdef\r\n"}) {
    write(text, 0600);
    EXPECT_EQ(read_secret(file, "--option", 16), "0123456789abcdef");
  }
  for (const mode_t mode : {mode_t{0640}, mode_t{0604}, mode_t{0620}, mode_t{0602}, mode_t{0644}}) {
    write("0123456789abcdef", mode);
    EXPECT_THROW((void)read_secret(file, "--option", 16), Error) << mode;
  }
  for (const auto& text : {std::string("too short\n"), std::string(5000, 'x'), std::string(),
                           std::string("two lines of\nsome length"), std::string(20, '\0')}) {
    write(text, 0600);
    EXPECT_THROW((void)read_secret(file, "--option", 16), Error) << text.size();
  }
  fs::remove(file);
  EXPECT_THROW((void)read_secret(file, "--option", 16), Error);
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  EXPECT_THROW((void)read_secret(file, "--option", 16), Error) << "and nobody waits for its writer";
}

}  // namespace
}  // namespace paceline::base

#include "base/replacement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace paceline::base {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
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
  for (const char* other :
       {"b.partial-abcdef", "a.partial", "a.partial-abcdefg", "a.partial-abc", "xa.partial-abcdef"})
    write_file(folder_ / other, "x");
  write_file(folder_ / "a.partial-abcdef", "x");  // nobody holds it
  write_file(folder_ / "a", "new");
  EXPECT_THAT(names(), UnorderedElementsAre("a", "b.partial-abcdef", "a.partial", "a.partial-abcdefg",
                                            "a.partial-abc", "xa.partial-abcdef"));
}

TEST_F(ReplacementTest, WorksWithoutAFolderInTheName) {
  const auto before = fs::current_path();
  fs::current_path(folder_);
  kill_child(begin_in_child("a"));
  write_file("a", "new");
  fs::current_path(before);
  EXPECT_THAT(names(), ElementsAre("a"));
}

}  // namespace
}  // namespace paceline::base

#include "cli/restart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "cli/child.h"
#include "measure/record.h"
#include "program.h"

namespace paceline::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Restart, IsForALostProcessAndNotForWhatWouldBeSoAgain) {
  for (const int lost : {5, 128 + 6, 128 + 9, 128 + 11}) EXPECT_TRUE(is_worth_a_restart(lost)) << lost;
  for (const int other : {0, 2, 3, 4, 70, 127, 128 + 1, 128 + 2, 128 + 15})
    EXPECT_FALSE(is_worth_a_restart(other)) << other;
}

TEST(Restart, ALostProcessIsCommunicationForWhoeverStartedTheLaunch) {
  for (const int lost : {5, 128 + 9, 128 + 11}) EXPECT_EQ(exit_code_of_launch(lost), 5) << lost;
  for (const int other : {0, 2, 3, 128 + 2, 128 + 15}) EXPECT_EQ(exit_code_of_launch(other), other);
}

TEST(Restart, GoesOnFromACheckpointAndElseBeginsAnew) {
  const Folder folder;
  const auto out = folder.path() / "out";
  std::filesystem::create_directory(out);
  base::write_file(out / "record.json", std::string_view("{}"));
  EXPECT_TRUE(restart_words(out).empty());
  EXPECT_FALSE(std::filesystem::exists(out / "record.json"));  // train refuses a directory that holds one
  EXPECT_TRUE(std::filesystem::exists(out / "lost.json"));     // and reads there how it was lost
  base::write_file(out / "checkpoint-00000012.safetensors", std::string_view(""));
  EXPECT_THAT(restart_words(out), ElementsAre("--resume", out.string()));
}

TEST(Restart, NeedsNoneWhatWasCompleteBeforeAProcessWasLost) {
  const Folder folder;
  const auto out = folder.path();
  EXPECT_FALSE(is_complete(out, "2026-01-01T00:00:00Z"));
  measure::Record record;
  record.created = "2026-01-01T00:00:05Z";
  record.status = "complete";
  measure::write_record(out / "record.json", record);
  EXPECT_TRUE(is_complete(out, "2026-01-01T00:00:05Z"));
  EXPECT_FALSE(is_complete(out, "2026-01-01T00:00:06Z")) << "of the training before this one";
  record.status = "interrupted";
  measure::write_record(out / "record.json", record);
  EXPECT_FALSE(is_complete(out, "2026-01-01T00:00:05Z"));
  EXPECT_EQ(run_with_restarts({"sh", "-c", "exit 5"}, 3,
                              [](int, const Ended&) { return std::vector<std::string>(); }),
            0);
}

TEST(Restart, RunsAgainAsOftenAsAllowedAndGivesTheLastExitCode) {
  std::vector<int> attempts;
  const auto run = [&](const std::string& script, int restarts) {
    attempts.clear();
    return run_with_restarts({"sh", "-c", script}, restarts, [&](int attempt, const Ended& ended) {
      EXPECT_TRUE(is_worth_a_restart(ended.code));
      EXPECT_FALSE(ended.detection_s.has_value()) << "a shell is no worker";
      attempts.push_back(attempt);
      return std::vector<std::string>{"sh", "-c", script, "again"};  // the last becomes $0 of the script
    });
  };
  EXPECT_EQ(run("exit 5", 2), 5);
  EXPECT_THAT(attempts, ElementsAre(1, 2));
  EXPECT_EQ(run("test \"$0\" = again || kill -KILL $$", 3), 0);
  EXPECT_THAT(attempts, ElementsAre(1));
  EXPECT_EQ(run("exit 2", 3), 2);
  EXPECT_TRUE(attempts.empty());
}

TEST(Restart, TellsTheNextRunWhatLaunchHasSeenOfTheLoss) {
  const auto killed =
      read_lost(lost_text(1700000006.125, {.code = 128 + 9, .detection_s = 0.75, .known_ago_s = 6}).c_str());
  ASSERT_TRUE(killed.has_value());
  EXPECT_DOUBLE_EQ(killed->loss.known_at_s, 1700000000.125);
  EXPECT_EQ(killed->loss.detection_s, 0.75);
  EXPECT_THAT(killed->how, HasSubstr("mpirun ended with 137 (signal 9, Killed)"));
  const auto elsewhere = read_lost(lost_text(1, {.code = 5}).c_str());
  ASSERT_TRUE(elsewhere.has_value());
  EXPECT_FALSE(elsewhere->loss.detection_s.has_value()) << "all its processes were on other hosts";
  for (const char* none : {static_cast<const char*>(nullptr), "", "yesterday"})
    EXPECT_FALSE(read_lost(none).has_value());
}

// Open MPI ended with -13, and a person read of signal 115.
TEST(Restart, NamesASignalOnlyWhereThereIsOne) {
  EXPECT_EQ(sentence_of_end(243), "mpirun ended with 243");
  EXPECT_EQ(sentence_of_end(128 + 9), "mpirun ended with 137 (signal 9, Killed)");
}

TEST(Restart, SaysWhatToInstallWhenTheLauncherIsNotThere) {
  try {
    (void)run_line({"/nowhere/mpirun"});
    FAIL() << "a program that is not there was started";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::comm);
    EXPECT_THAT(error.what(), HasSubstr("openmpi-bin"));
  }
}

}  // namespace
}  // namespace paceline::cli

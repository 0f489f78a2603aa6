#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <functional>

#include "base/error.h"
#include "base/file.h"
#include "cli/program.h"
#include "cluster/child.h"
#include "measure/record.h"

namespace paceline::cluster {
namespace {

using cli::Folder;
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
  EXPECT_THAT(restart_words(out), ElementsAre("--resume", "auto"));
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
  const StopRequest stop;
  const RestartRule rule{.restarts = 3,
                         .progress = {},
                         .again = [](int, const Ended&) { return std::vector<std::string>(); },
                         .wait = [](std::chrono::milliseconds) {}};
  EXPECT_EQ(run_with_restarts({"sh", "-c", "exit 5"}, stop, rule), 0);
}

TEST(Restart, RunsAgainAsOftenAsAllowedAndGivesTheLastExitCode) {
  std::vector<int> attempts, waits;
  std::function<std::int64_t()> progress;
  const auto run = [&](const std::string& script, int restarts) {
    attempts.clear();
    waits.clear();
    const StopRequest stop;
    RestartRule rule{.restarts = restarts, .progress = progress, .again = {}, .wait = {}};
    rule.again = [&](int attempt, const Ended& ended) {
      EXPECT_TRUE(is_worth_a_restart(ended.code));
      EXPECT_FALSE(ended.detection_s.has_value()) << "a shell is no worker";
      attempts.push_back(attempt);
      return std::vector<std::string>{"sh", "-c", script, "again"};  // the last becomes $0 of the script
    };
    rule.wait = [&](std::chrono::milliseconds time) {
      waits.push_back(static_cast<int>(time.count() / 1000));
    };
    return run_with_restarts({"sh", "-c", script}, stop, rule);
  };
  EXPECT_EQ(run("exit 5", 2), 5);
  EXPECT_THAT(attempts, ElementsAre(1, 2));
  EXPECT_EQ(run("test \"$0\" = again || kill -KILL $$", 3), 0);
  EXPECT_THAT(attempts, ElementsAre(1));
  EXPECT_EQ(run("exit 2", 3), 2);
  EXPECT_TRUE(attempts.empty());
  EXPECT_EQ(run("exit 5", 8), 5);
  EXPECT_THAT(waits, ElementsAre(1, 2, 4, 8, 16, 32, 60, 60));
  // Tries and waits count anew after one that came further.
  int asked = 0;
  progress = [&] { return std::int64_t{asked++ == 3 ? 7 : 0}; };
  EXPECT_EQ(run("exit 5", 2), 5);
  EXPECT_THAT(attempts, ElementsAre(1, 2, 1, 2));
  EXPECT_THAT(waits, ElementsAre(1, 2, 1, 2));
}

// The one that was told to stop went on to its end, started again by --restarts, and its code was 5.
TEST(Restart, NeverRestartsWhatWasToldToStopAndGivesTheSignal) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    const StopRequest stop;
    RestartRule rule{.restarts = 3,
                     .grace = std::chrono::seconds(5),
                     .progress = {},
                     .again = [](int, const Ended&) -> std::vector<std::string> {
                       ADD_FAILURE() << "was started again";
                       return {};
                     },
                     .wait = {}};
    const auto line =
        fmt::format("trap 'exit 5' TERM; kill -{} {}; while :; do sleep 0.05; done", signal, ::getpid());
    EXPECT_EQ(run_with_restarts({"sh", "-c", line}, stop, rule), 128 + signal);
  }
  const StopRequest stop;  // while it waits for the next try
  RestartRule rule{.restarts = 3,
                   .progress = {},
                   .again = [](int, const Ended&) -> std::vector<std::string> {
                     ADD_FAILURE() << "was started again";
                     return {};
                   },
                   .wait = [](std::chrono::milliseconds) { ::raise(SIGTERM); }};
  EXPECT_EQ(run_with_restarts({"sh", "-c", "exit 5"}, stop, rule), 128 + SIGTERM);
}

TEST(Restart, EndsByForceWhatDoesNotEndWithinItsGrace) {
  const StopRequest stop;
  const auto line = fmt::format("trap '' TERM; kill -TERM {}; while :; do sleep 0.05; done", ::getpid());
  EXPECT_EQ(run_line({"sh", "-c", line}, stop, std::chrono::seconds(0)).code, 128 + SIGKILL);
}

// The next try met the orphans of the one before: "another run is writing to it".
TEST(Restart, LeavesNoOrphanBehind) {
  const Folder folder;
  const auto pid = folder.path() / "pid";
  const StopRequest stop;
  const auto line =
      fmt::format("(trap '' TERM; while :; do sleep 0.05; done) & echo $! >{}; kill -KILL $$", pid.string());
  EXPECT_EQ(run_line({"sh", "-c", line}, stop, std::chrono::seconds(0)).code, 128 + SIGKILL);
  const auto left = static_cast<pid_t>(std::stol(base::read_file(pid)));
  EXPECT_EQ(::kill(left, 0), -1) << "the orphan lives";
}

TEST(Restart, TellsTheNextRunWhatLaunchHasSeenOfTheLoss) {
  const auto killed = read_lost(
      lost_text(1700000006.125, {.code = 128 + 9, .detection_s = 0.75, .known_ago_s = 6}, "mpirun").c_str());
  ASSERT_TRUE(killed.has_value());
  EXPECT_DOUBLE_EQ(killed->loss.known_at_s, 1700000000.125);
  EXPECT_EQ(killed->loss.detection_s, 0.75);
  EXPECT_THAT(killed->how, HasSubstr("mpirun ended with 137 (signal 9, Killed)"));
  const auto elsewhere = read_lost(lost_text(1, {.code = 5}, "srun").c_str());
  ASSERT_TRUE(elsewhere.has_value());
  EXPECT_FALSE(elsewhere->loss.detection_s.has_value()) << "all its processes were on other hosts";
  EXPECT_THAT(elsewhere->how, HasSubstr("srun ended with 5"));
  EXPECT_THAT(read_lost("at=1,code=5,after=-1")->how, HasSubstr("mpirun ended with 5")) << "of before";
  for (const char* none : {static_cast<const char*>(nullptr), "", "yesterday"})
    EXPECT_FALSE(read_lost(none).has_value());
}

// Open MPI ended with -13, and a person read of signal 115.
TEST(Restart, NamesASignalOnlyWhereThereIsOne) {
  EXPECT_EQ(sentence_of_end(243, "mpirun"), "mpirun ended with 243");
  EXPECT_EQ(sentence_of_end(128 + 9, "srun"), "srun ended with 137 (signal 9, Killed)");
}

TEST(Restart, SaysWhatToInstallWhenTheLauncherIsNotThere) {
  try {
    const StopRequest stop;
    (void)run_line({"/nowhere/mpirun"}, stop, std::chrono::seconds(5));
    FAIL() << "a program that is not there was started";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::comm);
    EXPECT_THAT(error.what(), HasSubstr("openmpi-bin"));
  }
}

}  // namespace
}  // namespace paceline::cluster

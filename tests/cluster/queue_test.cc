#include "cluster/queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "cli/program.h"

namespace paceline::cluster {
namespace {

using cli::Folder;
using cli::Outcome;
using cli::run_program;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(QueueSentence, SaysReasonAndExpectedStart) {
  EXPECT_EQ(queue_sentence("PENDING|Priority|2026-11-25T08:00:00\n"),
            "queue: PENDING, Priority (jobs before it come first); expected start 2026-11-25T08:00:00");
  EXPECT_EQ(
      queue_sentence("PENDING|Resources|N/A"),
      "queue: PENDING, Resources (it is next, and waits until enough nodes are free); no expected start yet");
  EXPECT_EQ(
      queue_sentence("PENDING|ReqNodeNotAvail, UnavailableNodes:n7|N/A"),
      "queue: PENDING, ReqNodeNotAvail, UnavailableNodes:n7 (nodes that it needs are down or reserved); no "
      "expected start yet");
  EXPECT_EQ(queue_sentence("PENDING|None|N/A"), "queue: PENDING, no reason yet; no expected start yet");
  EXPECT_EQ(queue_sentence("PENDING|SomethingNew|N/A"),
            "queue: PENDING, SomethingNew; no expected start yet");
  EXPECT_EQ(queue_sentence("RUNNING|None|2026-11-24T09:00:00"),
            "queue: RUNNING, started 2026-11-24T09:00:00");
  EXPECT_EQ(queue_sentence(""), "") << "a job that has left the queue";
  EXPECT_EQ(queue_sentence("slurm_load_jobs error"), "");
}

TEST(QueueSentence, WaitsForSlurmToLookAtTheJob) {
  EXPECT_FALSE(is_considered("PENDING|None|N/A"));
  EXPECT_TRUE(is_considered("PENDING|None|2026-11-24T09:00:00"));
  EXPECT_TRUE(is_considered("PENDING|Priority|N/A"));
  EXPECT_TRUE(is_considered("RUNNING|None|2026-11-24T09:00:00"));
  EXPECT_TRUE(is_considered(""));
}

/// A Slurm of stand-ins for the length of a test: sbatch takes any script as job 4711, squeue says `answer`.
class StandIns {
 public:
  explicit StandIns(const std::string& squeue) {
    write("sbatch", "cp \"$2\" \"$(dirname \"$0\")/submitted\"; echo '4711;cluster'");
    if (!squeue.empty()) write("squeue", squeue);
    ::setenv("PATH", (folder_.path().string() + ":" + before_).c_str(), 1);
  }
  ~StandIns() { ::setenv("PATH", before_.c_str(), 1); }
  StandIns(const StandIns&) = delete;
  StandIns& operator=(const StandIns&) = delete;
  [[nodiscard]] std::filesystem::path folder() const { return folder_.path(); }

 private:
  void write(const std::string& name, const std::string& body) const {
    const auto path = folder_.write(name, "#!/bin/sh\n" + body + "\n");
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  const Folder folder_;
  const std::string before_ = std::getenv("PATH");
};

Outcome submit(const StandIns& slurm, const std::string& command) {
  return run_program({"sbatch", "--nodes", "2", "--script", (slurm.folder() / "job").string(), "--submit",
                      "--", command, "--out", "results"},
                     {.directory = slurm.folder()});
}

TEST(SbatchCommand, SaysWhyTheJobWaitsAndUntilWhen) {
  const StandIns slurm(
      "[ \"$*\" = '--noheader --jobs 4711 --format %T|%r|%S' ] && echo 'PENDING|Priority|2026-11-25T08:00:00'");
  const auto said = submit(slurm, "train");
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out,
              AllOf(HasSubstr("job 4711 "), HasSubstr("queue: PENDING, Priority"),
                    HasSubstr("expected start 2026-11-25T08:00:00"), HasSubstr("squeue --jobs 4711 --start"),
                    HasSubstr("record: results/record.json")));
}

TEST(SbatchCommand, IsSubmittedWhereTheQueueSaysNothing) {
  const StandIns slurm("echo 'slurm_load_jobs error' >&2; exit 1");
  const auto said = submit(slurm, "train");
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.err, "");
  EXPECT_THAT(said.out, AllOf(HasSubstr("job 4711 "), Not(HasSubstr("queue:"))));
}

TEST(SbatchCommand, SubmitsEveryCommandThatMeasures) {
  const StandIns slurm("echo 'RUNNING|None|2026-11-24T09:00:00'");
  for (const std::string command : {"sweep", "scale", "converge", "study"}) {
    const auto said = submit(slurm, command);
    EXPECT_EQ(said.code, 0) << command << ": " << said.err;
    EXPECT_THAT(said.out, AllOf(HasSubstr("queue: RUNNING"), HasSubstr("records: results/records"),
                                HasSubstr("report: results/report.html")));
    EXPECT_TRUE(std::filesystem::exists(slurm.folder() / "submitted")) << command;
  }
  EXPECT_THAT(submit(slurm, "comm").out, HasSubstr("record: results/record.json"));
  EXPECT_THAT(submit(slurm, "report").err, HasSubstr("not 'report'"));
}

}  // namespace
}  // namespace paceline::cluster

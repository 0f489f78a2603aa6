/// sbatch --array: the scripts' text, and the scripts run by a stand-in for srun: parts, then one report.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "cli/program.h"
#include "cluster/batch_script.h"

namespace paceline::cluster {
namespace {

using cli::Folder;
using cli::run_program;

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

TEST(BatchArray, GivesEachTaskItsPartAndJoinsThemInTheEnd) {
  const BatchOptions options{
      .account = "physics", .name = "curve", .setup = {"module load gcc"}, .array = 8, .array_at_once = 3};
  const BatchCommand command{
      .program = "/opt/paceline", .words = {"study", "--repeats", "3"}, .out = "my out"};
  EXPECT_THAT(
      batch_script(options, command),
      AllOf(HasSubstr("\n#SBATCH --array=1-8%3\n"), HasSubstr("\n#SBATCH --output=curve-%A-%a.log\n"),
            HasSubstr("\nout='my out'/part-$SLURM_ARRAY_TASK_ID\n"),
            HasSubstr(" study --repeats 3 --only-cells \"$SLURM_ARRAY_TASK_ID/8\" --out \"$out\"\n")));
  const auto join = join_script(options, command);
  EXPECT_THAT(
      join, AllOf(HasSubstr("\n#SBATCH --job-name=curve-join\n"), HasSubstr("\n#SBATCH --account=physics\n"),
                  HasSubstr("\nmodule load gcc\n"), HasSubstr("for part in {1..8}"),
                  HasSubstr("exec /opt/paceline report \"$out\"/part-* --html"), Not(HasSubstr("--array"))));
  EXPECT_LT(join.rfind("#SBATCH"), join.find("module load"));
  EXPECT_EQ(join_path("jobs/a.sbatch"), "jobs/a-join.sbatch");
  EXPECT_THAT(batch_script({}, command), AllOf(Not(HasSubstr("array")), Not(HasSubstr("only-cells"))));
}

// In the script, which others can read, stands no secret: the job makes it when it begins.
TEST(BatchArray, MakesASecretForItsProcesses) {
  const BatchCommand command{.program = "p", .words = {"train"}, .out = "o"};
  for (const auto mpi : {BatchMpi::automatic, BatchMpi::none}) {
    const auto script = batch_script({.mpi = mpi}, command);
    EXPECT_THAT(script,
                HasSubstr("\nPACELINE_SECRET=${PACELINE_SECRET:-$(od -An -N16 -tx1 /dev/urandom | tr -d ' "
                          "\\n')}\nexport PACELINE_SECRET\n"));
    EXPECT_LT(script.find("export PACELINE_SECRET"), script.find("srun --mpi=\"$mpi\" "));
  }
  EXPECT_THAT(batch_script({.mpi = BatchMpi::pmix}, command), Not(HasSubstr("SECRET")));
}

TEST(BatchArray, IsForCommandsWithCellsAlone) {
  for (const std::string command : {"train", "comm", "search"})
    EXPECT_THROW((void)batch_script({.array = 2}, {.program = "p", .words = {command}, .out = "o"}),
                 base::Error);
  EXPECT_EQ(run_program({"sbatch", "--array", "2", "--", "train"}).code, 2);
  for (const char* wrong : {"0", "two", "4%", "4%0", "1-4"})
    EXPECT_EQ(run_program({"sbatch", "--array", wrong, "--", "study"}).code, 2) << wrong;
  EXPECT_THAT(run_program({"sbatch", "--array", "0", "--", "study"}).err,
              HasSubstr("--array must have a whole number from 1 to 1000 as its number of jobs, got '0'"));
  for (const char* wrong : {"0/2", "3/2", "2", "1/x"})
    EXPECT_EQ(run_program({"sweep", "--only-cells", wrong}).code, 2) << wrong;
}

TEST(BatchArray, MeasuresEachCellOnceAndReportsAll) {
  const Folder folder;
  const auto there = folder.path();
  fs::create_directories(there / "bin");
  // What a Slurm without PMIx does with a step of one task.
  folder.write(
      "bin/srun",
      "#!/bin/bash\n[[ $1 == --mpi=list ]] && exit\nwhile [[ $1 == -* ]]; do shift; done\nexec \"$@\"\n");
  fs::permissions(there / "bin/srun", fs::perms::owner_all);
  const Words sweep{"sweep",
                    "--model",
                    "resnet8-cifar",
                    "--data",
                    "synthetic,train=64,test=16",
                    "--batches",
                    "4,8,16",
                    "--repeats",
                    "1",
                    "--window-steps",
                    "2",
                    "--warmup-steps",
                    "0",
                    "--threads",
                    "1"};
  Words words{"sbatch", "--array", "2", "--script", "job.sh", "--"};
  words.insert(words.end(), sweep.begin(), sweep.end());
  words.insert(words.end(), {"--out", "o"});
  const auto written = run_program(words, {.directory = there});
  ASSERT_EQ(written.code, 0) << written.err;
  EXPECT_THAT(written.out,
              HasSubstr("job=$(sbatch --parsable job.sh); sbatch --parsable --dependency=afterany:${job%;*} "
                        "job-join.sh"));
  const auto run = [&](const std::string& variables, const std::string& script) {
    const auto line = "cd '" + there.string() + "' && PATH='" + there.string() + "/bin':$PATH " + variables +
                      " bash " + script + " > log 2>&1";
    return std::system(line.c_str());
  };
  for (const char* task : {"1", "2"})
    ASSERT_EQ(run(std::string("SLURM_ARRAY_TASK_ID=") + task, "job.sh"), 0) << base::read_file(there / "log");
  const auto records = [&](const char* part) {
    return std::distance(fs::directory_iterator(there / "o" / part / "records"), fs::directory_iterator());
  };
  EXPECT_EQ(records("part-1"), 2);
  EXPECT_EQ(records("part-2"), 2);  // with what a sweep says of the largest batch that fits
  ASSERT_EQ(run("", "job-join.sh"), 0) << base::read_file(there / "log");
  const auto report = base::read_file(there / "o/report.md");
  for (const char* batch : {"| 4 ", "| 8 ", "| 16 "}) EXPECT_THAT(report, HasSubstr(batch));
  EXPECT_TRUE(fs::exists(there / "o/report.html"));

  // A task that left nothing is named, and the others are reported.
  fs::remove_all(there / "o/part-2");
  ASSERT_EQ(run("", "job-join.sh"), 0);
  EXPECT_THAT(base::read_file(there / "log"), HasSubstr("part 2 of 2 left nothing"));
  // More parts than cells: the last has nothing to do, and that is no fault.
  Words none = sweep;
  none.insert(none.end(), {"--only-cells", "9/9", "--out", "none"});
  const auto empty = run_program(none, {.directory = there});
  EXPECT_EQ(empty.code, 0) << empty.err;
  EXPECT_THAT(empty.err, HasSubstr("part 9 of 9 has no cells"));
  EXPECT_FALSE(fs::exists(there / "none"));
}

}  // namespace

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

TEST(QueueSentence, HasAdviceOnWhatBeginsEarlier) {
  EXPECT_THAT(queue_advice("PENDING|Priority|N/A", "7"),
              AllOf(HasSubstr("shorter --time"), HasSubstr("--partition"),
                    HasSubstr("squeue --jobs 7 --start"), HasSubstr("as soon as")));
  EXPECT_THAT(queue_advice("PENDING|PartitionTimeLimit|N/A", "7"), HasSubstr("never begins"));
  EXPECT_THAT(queue_advice("PENDING|None|N/A", "7"), HasSubstr("fewer --nodes"));
  EXPECT_EQ(queue_advice("RUNNING|None|2026-11-24T09:00:00", "7"), "");
  EXPECT_EQ(queue_advice("", "7"), "");
}

TEST(SbatchCommand, AsksLaterAboutAJob) {
  const StandIns waits("echo 'PENDING|PartitionDown|N/A'");
  const auto ask = [&] { return run_program({"sbatch", "--status", "4711"}, {.directory = waits.folder()}); };
  const auto said = ask();
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out, AllOf(HasSubstr("PENDING, PartitionDown"), HasSubstr("another --partition")));
  EXPECT_FALSE(std::filesystem::exists(waits.folder() / "paceline.sbatch")) << "only asked";
  const StandIns gone("exit 1");
  EXPECT_THAT(ask().out, HasSubstr("sacct --jobs 4711"));
}

TEST(SbatchCommand, SaysWhereSqueueIsMissing) {
  const auto said = run_program({"sbatch", "--status", "4711"}, {.variables = {{"PATH", "/nowhere"}}});
  EXPECT_EQ(said.code, 2) << said.out;
  EXPECT_THAT(said.err, HasSubstr("squeue is not installed here"));
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

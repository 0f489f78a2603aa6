/// What the real program promises: help at once, JSON alone, nothing lost to Ctrl-C or a full disk.

#include "program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "base/file.h"
#include "measure/record.h"

namespace paceline::cli {
namespace {

using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

Words training(const Words& more) {
  Words words{"train",         "--model", "resnet8-cifar", "--data", "synthetic,train=64,test=32",
              "--local-batch", "16",      "--threads",     "1",      "--no-pin"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(Program, AnswersHelpAtOnce) {
  const auto began = std::chrono::steady_clock::now();
  const auto outcome = run_program({"train", "--help"});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("--global-batch B"));
  EXPECT_EQ(outcome.err, "");
  EXPECT_LT(took.count(), 1.0);
}

TEST(Program, WithoutWordsShowsTheCommandsAndFails) {
  const auto outcome = run_program({});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("paceline study"));
}

TEST(Program, TrainLeavesARecordAndSaysWhere) {
  const Folder folder;
  const auto outcome = run_program(training({"--epochs", "1", "--out", "o"}), {.directory = folder.path()});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("epoch 1"));
  EXPECT_THAT(outcome.out, HasSubstr("1 worker x 1 thread on "));
  EXPECT_THAT(outcome.out, HasSubstr("record: o/record.json"));
  const auto record = measure::read_record(folder.path() / "o/record.json");
  EXPECT_EQ(record.status, "complete");
  EXPECT_EQ(record.epochs.size(), 1u);
  EXPECT_THAT(record.command,
              HasSubstr("paceline train --model resnet8-cifar --data synthetic,train=64,test=32"));
}

TEST(Program, TheRecordSaysWhichRecipeSetWhat) {
  const Folder folder;
  const auto recipe = folder.write("r.toml", "lr = 0.025\nmomentum = 0.5\n");
  const auto outcome = run_program(training({recipe, "--momentum", "0.8", "--steps", "1", "--out", "o"}),
                                   {.directory = folder.path()});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto record = measure::read_record(folder.path() / "o/record.json");
  EXPECT_THAT(record.notes, testing::Contains(recipe + " sets lr, momentum; typed instead: momentum"));
  EXPECT_EQ(record.settings.at("lr"), "0.025");
  EXPECT_EQ(record.settings.at("momentum"), "0.8");
}

TEST(Program, JsonIsAloneOnStandardOutput) {
  const Folder folder;
  const auto outcome =
      run_program(training({"--steps", "2", "--json", "--out", "o"}), {.directory = folder.path()});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto record = measure::record_from_json(outcome.out, "standard output");
  EXPECT_EQ(record.kind, "train");
  EXPECT_THAT(outcome.err, HasSubstr("record: o/record.json"));
}

TEST(Program, AReportIsMadeAgainFromARecordAlone) {
  const Folder folder;
  ASSERT_EQ(run_program(training({"--steps", "2", "--out", "o"}), {.directory = folder.path()}).code, 0);
  std::filesystem::create_directory(folder.path() / "r");
  const auto outcome = run_program({"report", "o", "--html", "r/page.html", "--markdown", "r/page.md",
                                    "--csv", "r/csv", "--json", "r/page.json"},
                                   {.directory = folder.path()});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(base::read_file(folder.path() / "r/page.md"), HasSubstr("resnet8-cifar"));
  EXPECT_THAT(base::read_file(folder.path() / "r/page.html"), HasSubstr("<html"));
  EXPECT_THAT(base::read_file(folder.path() / "r/page.json"), HasSubstr("paceline-report-2"));
  EXPECT_FALSE(std::filesystem::is_empty(folder.path() / "r/csv"));
}

TEST(Program, AFileAskedForInADirectoryThatIsNotThereIsRefused) {
  // A typing error used to become a directory.
  const Folder folder;
  const RunConditions here{.directory = folder.path()};
  const auto trained = run_program(training({"--steps", "1", "--out", "o", "--timeline", "o/t.json"}), here);
  ASSERT_EQ(trained.code, 0) << "--out makes its directory, and the timeline may go there: " << trained.err;
  for (const char* option : {"--html", "--markdown", "--json"}) {
    const auto outcome = run_program({"report", "o", option, "tpyo/file"}, here);
    EXPECT_EQ(outcome.code, 3) << option << outcome.err;
  }
  const auto outcome = run_program({"report", "o", "--markdown", "good.md", "--html", "tpyo/page"}, here);
  EXPECT_THAT(outcome.err,
              HasSubstr("--html tpyo/page: there is no directory tpyo; make it first, or give another file"));
  EXPECT_THAT(run_program({"report", "o", "--html", "o/record.json/page"}, here).err,
              HasSubstr("this is not a directory: o/record.json"));
  EXPECT_THAT(run_program(training({"--steps", "1", "--out", "p", "--timeline", "tpyo/t.json"}), here).err,
              HasSubstr("--timeline tpyo/t.json: there is no directory tpyo"));
  EXPECT_THAT(run_program({"sbatch", "--script", "tpyo/job", "--", "train"}, here).err,
              HasSubstr("--script tpyo/job: there is no directory tpyo"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "tpyo"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "good.md")) << "refused before anything is written";
}

TEST(Program, AResumedTrainingSaysFromWhereAndWhereTo) {
  const Folder folder;
  const RunConditions here{.directory = folder.path()};
  const auto resumed = [&](const std::vector<std::string>& more) {
    return run_program(training(more), here);  // of 4 steps an epoch
  };
  ASSERT_EQ(resumed({"--steps", "2", "--out", "r1"}).code, 0);
  const auto elsewhere = resumed({"--steps", "4", "--resume", "r1", "--out", "r2"});
  ASSERT_EQ(elsewhere.code, 0) << elsewhere.err;
  EXPECT_THAT(
      elsewhere.out,
      HasSubstr("resumed from r1/checkpoint-00000002.safetensors: update 2 of 4, step 2 of 4 in epoch 1"));
  EXPECT_THAT(elsewhere.out, HasSubstr("this run writes to r2; r1 stays as it is"));
  EXPECT_THAT(elsewhere.out,
              HasSubstr("epoch 1: training loss, accuracy and seconds are of 2 of its 4 steps"));
  const auto in_place = resumed({"--steps", "4", "--resume", "r1", "--out", "r1"});
  ASSERT_EQ(in_place.code, 0) << in_place.err;
  EXPECT_THAT(in_place.out, HasSubstr("resumed from r1/"));
  EXPECT_THAT(in_place.out, testing::Not(HasSubstr("stays as it is")));
}

TEST(Program, HelpIsNoWiderThanATerminalOf80Columns) {
  for (const char* command : {"train", "study", "launch", "comm"}) {
    const auto text = run_program({command, "--help"}).out;
    std::size_t begin = text.find("\n  --");  // the options; what is above them is one sentence
    ASSERT_NE(begin, std::string::npos);
    for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
      EXPECT_LE(end - begin, 80u) << text.substr(begin, end - begin);
  }
}

TEST(Program, CtrlCKeepsTheRecordOfWhatWasDone) {
  const Folder folder;
  Program program(training({"--epochs", "1000000", "--no-checkpoints", "--out", "o"}),
                  {.directory = folder.path()});
  ASSERT_TRUE(program.wait_for("epoch 2 "));
  program.signal(SIGINT);
  const auto outcome = program.finish();
  EXPECT_EQ(outcome.code, 128 + SIGINT) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("keeping the record"));
  const auto record = measure::read_record(folder.path() / "o/record.json");
  EXPECT_EQ(record.status, "interrupted");
  EXPECT_GE(record.epochs.size(), 2u);
  EXPECT_EQ(run_program({"report", "o"}, {.directory = folder.path()}).code, 0);
}

/// Of one batch, a step a cell.
std::vector<std::string> scaling(const std::vector<std::string>& more) {
  std::vector<std::string> words{"scale",
                                 "--model",
                                 "resnet8-cifar",
                                 "--data",
                                 "synthetic,train=64,test=16",
                                 "--batches",
                                 "4",
                                 "--window-steps",
                                 "1",
                                 "--warmup-steps",
                                 "0",
                                 "--threads",
                                 "1",
                                 "--out",
                                 "o"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// A report of a few cells of many looked like one of a small study.
TEST(Program, AStoppedStudySaysThatItIsPartial) {
  const Folder folder;
  Program program(scaling({"--workers", "1", "--repeats", "1000"}), {.directory = folder.path()});
  const auto third = folder.path() / "o/records/scale-weak-w1-b4-r2.json";
  for (int i = 0; i < 600 && !std::filesystem::exists(third); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ASSERT_TRUE(std::filesystem::exists(third));
  program.signal(SIGINT);
  const auto outcome = program.finish();
  EXPECT_EQ(outcome.code, 128 + SIGINT) << outcome.err;
  const auto said = outcome.out + outcome.err;
  EXPECT_THAT(said, HasSubstr("PARTIAL: the study was stopped with "));
  EXPECT_THAT(said, HasSubstr(" of 1000 cells done and kept"));
  EXPECT_THAT(said, Not(HasSubstr("1000 of 1000 cells done")));
  const auto later = run_program({"report", "o"}, {.directory = folder.path()});
  EXPECT_THAT(later.out + later.err, HasSubstr("PARTIAL: the study was stopped with "));
}

TEST(Program, SaysOfAnEmulatedLinkThatItIsNone) {
  const Folder folder;
  const auto outcome =
      run_program(scaling({"--workers", "2", "--repeats", "1", "--emulate-link", "latency=1ms"}),
                  {.directory = folder.path()});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto said = outcome.out + outcome.err;
  EXPECT_THAT(said, HasSubstr("EMULATED (marked emulated) in 1 of 1 cell: link of 1000 us, no limit"));
  EXPECT_THAT(said, HasSubstr("images/s at 2 x 4, EMULATED link of 1000 us, no limit"));
}

TEST(Program, SaysThatWorkersSleep) {
  const Folder folder;
  const auto outcome = run_program(scaling({"--workers", "2", "--repeats", "1", "--emulate-link",
                                            "latency=5ms", "--emulate-compute", "forward=1ms,backward=1ms"}),
                                   {.directory = folder.path()});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(
      outcome.out + outcome.err,
      HasSubstr("EMULATED (marked emulated) in 1 of 1 cell: compute (forward=1ms,backward=1ms); link of "
                "5000 us, no limit"));
}

TEST(Program, TermKeepsTheRecordToo) {
  const Folder folder;
  Program program(training({"--epochs", "1000000", "--no-checkpoints", "--out", "o"}),
                  {.directory = folder.path()});
  ASSERT_TRUE(program.wait_for("epoch 1 "));
  program.signal(SIGTERM);
  program.signal(SIGTERM);  // `timeout` signals the process and then its group: that is one press
  EXPECT_EQ(program.finish().code, 128 + SIGTERM);
  EXPECT_EQ(measure::read_record(folder.path() / "o/record.json").status, "interrupted");
}

TEST(Program, AClosedTerminalKeepsTheRecordToo) {
  const Folder folder;
  Program program(training({"--epochs", "1000000", "--no-checkpoints", "--out", "o"}),
                  {.directory = folder.path()});
  ASSERT_TRUE(program.wait_for("epoch 1 "));
  program.signal(SIGHUP);
  EXPECT_EQ(program.finish().code, 128 + SIGHUP);
  EXPECT_EQ(measure::read_record(folder.path() / "o/record.json").status, "interrupted");
}

TEST(Program, UnderNohupOutlivesTheTerminal) {
  const Folder folder;
  const auto before = ::signal(SIGHUP, SIG_IGN);  // what nohup does, and what the program inherits
  Program program(training({"--epochs", "1000000", "--no-checkpoints", "--out", "o"}),
                  {.directory = folder.path()});
  ::signal(SIGHUP, before);
  ASSERT_TRUE(program.wait_for("epoch 1 "));
  program.signal(SIGHUP);
  program.signal(SIGINT);
  EXPECT_EQ(program.finish().code, 128 + SIGINT) << "the signal that stopped it";
}

TEST(Program, ASecondCtrlCEndsItAtOnce) {
  const Folder folder;
  // A step of this one takes long: the first press waits for its end, the second does not.
  Program program({"train", "--model", "resnet18-cifar", "--device", "reference", "--data",
                   "synthetic,train=256,test=8", "--local-batch", "256", "--steps", "9", "--out", "o"},
                  {.directory = folder.path()});
  ASSERT_TRUE(program.wait_for("memory: plan"));
  program.signal(SIGINT);
  ASSERT_TRUE(program.wait_for("press Ctrl-C again"));
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  const auto began = std::chrono::steady_clock::now();
  program.signal(SIGINT);
  const auto outcome = program.finish();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  EXPECT_EQ(outcome.code, 128 + SIGINT);
  EXPECT_THAT(outcome.err, HasSubstr("stopped at once"));
  EXPECT_LT(took.count(), 5.0);
}

TEST(Program, AFullDiskLeavesTheOldFilesWhole) {
  const Folder folder;
  const Words words = training({"--epochs", "1", "--seed", "1", "--out", "o"});
  ASSERT_EQ(run_program(words, {.directory = folder.path()}).code, 0);
  const auto record_path = folder.path() / "o/record.json";
  const auto before = base::read_file(record_path);
  std::vector<std::filesystem::path> files_before;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path() / "o"))
    files_before.push_back(entry.path());

  const auto outcome = run_program(training({"--epochs", "2", "--seed", "1", "--resume", "o", "--out", "o"}),
                                   {.directory = folder.path(), .largest_file = 512, .out_path = ""});
  EXPECT_EQ(outcome.code, 3) << outcome.out << outcome.err;
  // A resumed run keeps its record before it trains: on a full disk it ends there, before the hours.
  EXPECT_THAT(outcome.err, HasSubstr("o/record.json: cannot be written"));
  // SIGXFSZ used to end it without a word.
  EXPECT_THAT(outcome.err, HasSubstr("ulimit -f allows a file 512 bytes"));
  EXPECT_EQ(base::read_file(record_path), before);
  std::vector<std::filesystem::path> files_after;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path() / "o"))
    files_after.push_back(entry.path());
  EXPECT_THAT(files_after, testing::UnorderedElementsAreArray(files_before)) << "a temporary file was left";

  // A new one meets it at its first record; neither that nor, after it, the record of the failure could
  // be written: the first is said.
  const auto anew = run_program(training({"--epochs", "1", "--seed", "1", "--out", "n"}),
                                {.directory = folder.path(), .largest_file = 512, .out_path = ""});
  EXPECT_EQ(anew.code, 3) << anew.out << anew.err;
  EXPECT_THAT(anew.err, HasSubstr("n/record.json: cannot be written"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "n")) << "a temporary file was left, or its folder";
}

TEST(Program, OneCellIsOneCell) {
  const Folder folder;
  const auto outcome =
      run_program({"scale", "--model", "resnet8-cifar", "--data", "synthetic,train=64,test=32", "--batches",
                   "4", "--workers", "1", "--repeats", "1", "--window-steps", "2", "--out", "o"},
                  {.directory = folder.path()});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find("scale: 1 cell; records go to o/records"), 0u) << outcome.out.substr(0, 200);
}

TEST(Program, EveryCellOfASweepStaysWithinATenthOfItsMemoryPlan) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizers keep memory of their own";
#endif
  const Folder folder;
  const auto outcome = run_program(
      {"sweep", "--model", "resnet8-cifar", "--data", "synthetic,train=512,test=32", "--batches", "auto",
       "--threads", "2", "--no-pin", "--repeats", "1", "--window-steps", "2", "--out", "o"},
      {.directory = folder.path()});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  int measured = 0;  // the first cell is the hardest: nothing has run before it
  for (const auto& file : std::filesystem::directory_iterator(folder.path() / "o/records")) {
    const auto record = measure::read_record(file.path());
    if (!record.memory.peak_bytes) continue;  // not run, or the system does not let it be measured
    ++measured;
    const auto plan = static_cast<double>(record.memory.plan_bytes);
    EXPECT_NEAR(static_cast<double>(*record.memory.peak_bytes) / plan, 1.0, 0.1) << record.id;
  }
  if (measured == 0) GTEST_SKIP() << "this system does not let a process start its peak memory anew";
}

TEST(Program, MeasuresItsKernelsWhereAskedOnceAndNotForShards) {
  const Folder folder;
  const Words few{"--steps", "1", "--evaluate-every", "0"};
  const auto notes = [&](const std::string& out, const Words& more) {
    Words words = training(few);
    words.insert(words.end(), {"--out", out});
    words.insert(words.end(), more.begin(), more.end());
    const auto outcome = run_program(words, {.directory = folder.path(), .cache = "cache"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  };
  EXPECT_EQ(notes("shards", {"--shard", "4", "--measured-kernels"}).find("kernels:"), std::string::npos);
  EXPECT_EQ(notes("by-shape", {}).find("kernels:"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "cache"));
  EXPECT_THAT(notes("first", {"--measured-kernels"}), HasSubstr("kernels: measured in "));
  EXPECT_EQ(notes("second", {"--measured-kernels"}).find("kernels: measured in "), std::string::npos);
}

TEST(Program, EveryBatchNormModeTrains) {
  for (const char* mode : {"local", "sync", "ghost:4"}) {
    const Folder folder;
    const auto outcome = run_program(
        training({"--steps", "2", "--workers", "2", "--evaluate-every", "0", "--bn", mode, "--out", "o"}),
        {.directory = folder.path(), .cache = "cache"});
    EXPECT_EQ(outcome.code, 0) << mode << ": " << outcome.err;
  }
}

TEST(Program, AStoppedSweepGoesOnWhereItWas) {
  const Folder folder;
  const Words words{"sweep",
                    "--model",
                    "resnet8-cifar",
                    "--data",
                    "synthetic,train=64,test=32",
                    "--batches",
                    "4,8",
                    "--repeats",
                    "2",
                    "--window-steps",
                    "2",
                    "--out",
                    "o"};
  const auto first = run_program(words, {.directory = folder.path()});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("o/report.html"));
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "o/report.html"));
  std::filesystem::remove(folder.path() / "o/records/sweep-b8-r1.json");
  const auto second = run_program(words, {.directory = folder.path()});
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.out, HasSubstr("sweep     ✓ 4 cells (3 kept from before)"));
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "o/records/sweep-b8-r1.json"));
}

}  // namespace
}  // namespace paceline::cli

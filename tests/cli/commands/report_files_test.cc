// --expect, --latex, --figures and --summary through the real program: files, lines and exit codes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "cli/program.h"
#include "golden/records.h"

namespace paceline::cli {
namespace {

namespace fs = std::filesystem;
using golden::make_record;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

/// A folder r with three repeats of 1 and 2 workers that nothing disturbed.
void write_records(const Folder& folder) {
  for (int repeat = 0; repeat < 3; ++repeat)
    for (const int workers : {1, 2}) {
      auto record = make_record(
          {.workers = workers, .repeat = repeat, .forward = 0.4 + 0.001 * repeat + 0.02 * workers});
      record.window.others_cores = 0;
      (void)folder.write("r/" + record.id + ".json", to_json(record));
    }
}

Outcome report_files(const Folder& folder, Words more) {
  more.insert(more.begin(), {"report", "r"});
  return run_program(more, {.directory = folder.path()});
}

TEST(ReportFiles, EndsWithTheCodeOfTheWorst) {
  const Folder folder;
  write_records(folder);
  const struct {
    Words bounds;
    int code;
    const char* says;
  } cases[] = {
      {{"throughput>=10", "efficiency>=90%"}, 0, "pass: throughput >= 10, measured "},
      {{"throughput>=10", "throughput>=1e6"}, 1, "1 of 2 expectations failed: exit code 1"},
      {{"throughput>=10", "accuracy>=0.5"}, 2, "1 of 2 expectations not known to hold: exit code 2"},
      {{"accuracy>=0.5", "throughput>=1e6"}, 1, "1 of 2 expectations failed: exit code 1"},
      {{"quickness>=1"}, 2, "--expect names no figure with 'quickness'; figures are throughput"},
  };
  for (const auto& one : cases) {
    Words words;
    for (const auto& bound : one.bounds) words.insert(words.end(), {"--expect", bound});
    const auto outcome = report_files(folder, words);
    EXPECT_EQ(outcome.code, one.code) << outcome.err;
    EXPECT_THAT(outcome.out + outcome.err, HasSubstr(one.says));
  }
}

TEST(ReportFiles, HoldsForATrainingToo) {
  const Folder folder;
  const auto train = [&](const std::string& bound) {
    return run_program(
        {"train", "--model", "resnet8-cifar", "--data", "synthetic,train=64,test=32", "--no-pin", "--threads",
         "1", "--global-batch", "16", "--epochs", "1", "--out", "run", "--no-checkpoints", "--expect", bound},
        {.directory = folder.path()});
  };
  const auto passed = train("accuracy>=0");
  EXPECT_EQ(passed.code, 0) << passed.err;
  EXPECT_THAT(passed.out + passed.err, HasSubstr("pass: accuracy >= 0, measured "));
  fs::remove_all(folder.path() / "run");
  EXPECT_EQ(train("accuracy>1").code, 1);
}

TEST(ReportFiles, SummaryIsAllOfStandardOutput) {
  const Folder folder;
  write_records(folder);
  const auto outcome = report_files(folder, {"--summary", "--expect", "efficiency>=2"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(outcome.out.starts_with("### Paceline: resnet18-cifar on cifar10\n")) << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("| ✗ fail | efficiency >= 2 |"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("records read")));
  EXPECT_THAT(outcome.err, HasSubstr("6 records read"));
}

TEST(ReportFiles, FiguresAreFilesInTheirFolder) {
  const Folder folder;
  write_records(folder);
  const auto outcome = report_files(folder, {"--figures", "f", "--latex", "t"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* file :
       {"f/hero-images-s.svg", "f/workers.svg", "f/step.svg", "t/tables.tex", "t/answer.tex"})
    EXPECT_TRUE(fs::exists(folder.path() / file)) << file;
  EXPECT_THAT(outcome.out, HasSubstr("no figure for 'How accurate?'"));
  EXPECT_FALSE(fs::exists(folder.path() / "f/accuracy-epoch.svg"));
}

TEST(ReportFiles, NameThePackageThatMakesPdfs) {
  const Folder folder;
  write_records(folder);
  const Words words{"report", "r", "--figures", "f"};
  const auto without = run_program(words, {.directory = folder.path(), .variables = {{"PATH", "/nowhere"}}});
  EXPECT_EQ(without.code, 0) << without.err;
  EXPECT_THAT(without.out, HasSubstr("install librsvg2-bin for PDFs beside them"));
  EXPECT_FALSE(fs::exists(folder.path() / "f/step.pdf"));
  // A converter of our own, which copies.
  const auto script = folder.write("bin/rsvg-convert", "#!/bin/sh\n/bin/cp \"$4\" \"${2#--output=}\"\n");
  fs::permissions(script, fs::perms::owner_all);
  const auto with = run_program(
      words, {.directory = folder.path(), .variables = {{"PATH", (folder.path() / "bin").string()}}});
  EXPECT_THAT(with.out, HasSubstr("SVG"));
  EXPECT_THAT(with.out, Not(HasSubstr(", 0 PDF)")));
  EXPECT_EQ(base::read_file(folder.path() / "f/step.pdf"), base::read_file(folder.path() / "f/step.svg"));
}

}  // namespace
}  // namespace paceline::cli

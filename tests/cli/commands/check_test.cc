/// `paceline check` and `paceline import` as a person and as a CI call them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "cli/program.h"
#include "golden/records.h"

namespace paceline::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kWrong =
    "run,workers,local_batch,time_s,time_of,claimed_speedup\nn1,1,128,100.0,epoch,\nn4,4,128,125.0,epoch,3.20\n";
constexpr const char* kRight =
    "run,workers,local_batch,time_s,time_of,claimed_speedup\nn1,1,128,100.0,epoch,\nn4,4,128,31.2,epoch,3.21\n";
constexpr const char* kWeak = "run,workers,time_s,time_of,warmup\na,1,10.0,epoch,0\n";
constexpr const char* kDdp =
    R"({"bucket_size": 25, "benchmark_results": [{"model": "resnet50", "batch_size": 32, "result": [{"ranks": [0], "measurements": [0.1]}]}]})";

Outcome run_in(const Folder& folder, const std::vector<std::string>& line) {
  return run_program(line, {.directory = folder.path()});
}

TEST(Check, NamesTheMistakeAndEndsWithOne) {
  const Folder folder;
  (void)folder.write("t.csv", kWrong);
  const auto outcome = run_in(folder, {"check", "t.csv", "--json", "f.json", "--sarif", "f.sarif"});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(
      outcome.out,
      AllOf(HasSubstr("error ratio.speedup (t.csv:3): n4: printed a speedup of 3.20 over n1 with 4 times the "
                      "workers; the times give 100.0 / 125.0 = 0.80."),
            HasSubstr("Corrected: 0.80 ["), HasSubstr("--why lists them"), HasSubstr("1 error, 1 warning")));
  EXPECT_THAT(run_in(folder, {"check", "t.csv", "--why"}).out, HasSubstr("not checked, and the columns"));
  EXPECT_THAT(base::read_file(folder.path() / "f.json"), HasSubstr("\"printed\": \"3.20\""));
  EXPECT_THAT(base::read_file(folder.path() / "f.sarif"), HasSubstr("\"ruleId\": \"ratio.speedup\""));
}

TEST(Check, IsQuietOfWhatHoldsAndStrictOnlyIfAsked) {
  const Folder folder;
  (void)folder.write("right.csv", kRight);
  (void)folder.write("weak.csv", kWeak);
  EXPECT_EQ(run_in(folder, {"check", "right.csv"}).code, 0);
  EXPECT_EQ(run_in(folder, {"check", "weak.csv"}).code, 0);
  const auto outcome = run_in(folder, {"check", "weak.csv", "right.csv", "--strict"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("warning protocol.warmup"));
}

TEST(Check, StrictFailsWhereNothingWasCompared) {
  const Folder folder;
  (void)folder.write("t.csv", "GPUs,time\n1,100\n2,55\n");
  const auto outcome = run_in(folder, {"check", "t.csv"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("nothing was compared"), testing::Not(HasSubstr("0 errors"))));
  EXPECT_EQ(run_in(folder, {"check", "t.csv", "--strict"}).code, 1);
}

TEST(Check, HoldsTablesAgainstEachOther) {
  const Folder folder;
  (void)folder.write(
      "t.md",
      "| GPUs | Batch per GPU | Epoch time (s) |\n|---|---|---|\n| 1 | 128 | 14.73 |\n\nlater\n\n"
      "| GPUs | Batch per GPU | Epoch time (s) |\n|---|---|---|\n| 1 | 128 | 5.99 |\n");
  EXPECT_THAT(
      run_in(folder, {"check", "t.md"}).out,
      HasSubstr("warning compare.conflict (t.md:9): line 9: time_s is 5.99 here and 14.73 in t.md:3"));
}

TEST(Check, ReadsRecordsAndNamesTheirRule) {
  const Folder folder;
  auto record = golden::make_record({.workers = 2});
  (void)folder.write("records/a.json", to_json(record));
  EXPECT_EQ(run_in(folder, {"check", "records"}).code, 0);
  record.global_batch += 1;
  record.id += "-b";
  (void)folder.write("records/b.json", to_json(record));
  const auto outcome = run_in(folder, {"check", "records/b.json"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("error size.product"));
}

TEST(Check, RowsAndRecordsAreInOneRatioOnlyOfOneMachine) {
  const Folder folder;
  auto record = golden::make_record({.workers = 1});
  (void)folder.write("records/a.json", to_json(record));
  const auto table = [&](double speedup) {
    return fmt::format(
        "run,program,model,workers,rate_per_s,rate_of,baseline,claimed_speedup\ntheirs,other,{},1,1000,all,{},{}\n",
        record.model.name, record.id, speedup);
  };
  std::vector<double> steps;
  for (const auto& rank : record.ranks) steps.insert(steps.end(), rank.step_s.begin(), rank.step_s.end());
  std::ranges::sort(steps);
  const double ours = record.global_batch / steps[steps.size() / 2];
  (void)folder.write("t.csv", table(1000 / ours));
  const auto refused = run_in(folder, {"check", "t.csv", "records"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err,
              HasSubstr("only where --same-machine says that both were measured on one machine"));
  const auto right = run_in(folder, {"check", "t.csv", "records", "--same-machine"});
  EXPECT_EQ(right.code, 0) << right.out << right.err;
  (void)folder.write("t.csv", table(ours / 1000));
  const auto wrong = run_in(folder, {"check", "t.csv", "records", "--same-machine"});
  EXPECT_EQ(wrong.code, 1) << wrong.out << wrong.err;
  EXPECT_THAT(wrong.out, HasSubstr("the times were divided the wrong way round"));
}

TEST(Check, CorrectsWithTheDigitsThatWerePrinted) {
  const Folder folder;
  (void)folder.write("t.csv",
                     "run,model,classes,parameters,test_samples,accuracy,quality_of\n"
                     "a,resnet50,1000,11689512,10000,0.98765,test\n");
  EXPECT_THAT(run_in(folder, {"check", "t.csv"}).out,
              AllOf(HasSubstr("Corrected: 0.98770 [0.98760, 0.98770]"), HasSubstr("Corrected: 25557032.")));
}

TEST(Check, ReportOfRecordsAloneSaysWhatDoesNotHold) {
  const Folder folder;
  auto record = golden::make_record({.workers = 2});
  (void)folder.write("records/a.json", to_json(record));
  EXPECT_THAT(run_in(folder, {"report", "records", "--tables"}).out,
              testing::Not(HasSubstr("What holds, and what does not")));
  record.global_batch += 1;
  (void)folder.write("records/a.json", to_json(record));
  EXPECT_THAT(run_in(folder, {"report", "records", "--tables"}).out,
              AllOf(HasSubstr("What holds, and what does not"), HasSubstr("size.product")));
}

TEST(Check, TemplatesPassTheCheckAndMistakesHaveTheirPlace) {
  const Folder folder;
  for (const char* const name : {"scaling", "communication", "batches", "accuracy"}) {
    const auto printed = run_in(folder, {"check", "--template", name});
    ASSERT_EQ(printed.code, 0) << printed.err;
    (void)folder.write("t.csv", printed.out);
    const auto outcome = run_in(folder, {"check", "t.csv"});
    EXPECT_EQ(outcome.code, 0) << name << "\n" << outcome.out << outcome.err;
  }
  EXPECT_THAT(run_in(folder, {"check", "--template", "scalng"}).err, HasSubstr("did you mean 'scaling'?"));
  (void)folder.write("bad.csv", "this,and,that\na,5,6\n");
  const auto bad = run_in(folder, {"check", "bad.csv"});
  EXPECT_EQ(bad.code, 3);
  EXPECT_THAT(bad.err, HasSubstr("neither a record nor a table"));
  (void)folder.write("bad.csv", "run,workers,time_ss\na,1,5\n");
  EXPECT_THAT(run_in(folder, {"check", "bad.csv"}).err,
              AllOf(HasSubstr("bad.csv:1:13"), HasSubstr("did you mean 'time_s'?")));
  EXPECT_EQ(run_in(folder, {"check"}).code, 2);
}

TEST(Import, WritesATableThatCanBeCompletedAndChecked) {
  const Folder folder;
  (void)folder.write("ddp.json", kDdp);
  const auto outcome = run_in(
      folder, {"import", "ddp.json", "--out", "t.csv", "--set", "device=A GPU", "--set", "setting.fabric=x"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto text = base::read_file(folder.path() / "t.csv");
  EXPECT_THAT(text, AllOf(HasSubstr("device"), HasSubstr("A GPU"), HasSubstr("setting.fabric"),
                          HasSubstr("unknown"), HasSubstr("0.1")));
  EXPECT_EQ(run_in(folder, {"check", "t.csv"}).code, 0);
  EXPECT_EQ(run_in(folder, {"check", "ddp.json"}).code, 0);
  EXPECT_THAT(run_in(folder, {"import", "ddp.json", "--set", "devise=A"}).err,
              HasSubstr("did you mean 'device'?"));
}

TEST(Report, IsMadeOfTablesToo) {
  const Folder folder;
  (void)folder.write("t.csv", kWrong);
  const auto outcome = run_in(folder, {"report", "t.csv", "--html", "page.html"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("1 table read"));
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "page.html"));
  EXPECT_THAT(run_in(folder, {"report", "t.csv"}).out, HasSubstr("What holds, and what does not"));
}

}  // namespace
}  // namespace paceline::cli

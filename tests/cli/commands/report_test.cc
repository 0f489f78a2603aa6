/// `paceline report` over files as people leave them: copies, the same directory twice, remains of records.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "base/file.h"
#include "cli/program.h"
#include "golden/records.h"

namespace paceline::cli {
namespace {

namespace fs = std::filesystem;
using golden::make_record;
using measure::Record;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

/// What `report` says of `paths` on the screen, and its report as Markdown.
Outcome report(const Folder& folder, const Words& paths) {
  Words words{"report"};
  words.insert(words.end(), paths.begin(), paths.end());
  words.insert(words.end(), {"--markdown", "page.md"});
  auto outcome = run_program(words, {.directory = folder.path()});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  outcome.out += outcome.err;
  return outcome;
}

std::string page(const Folder& folder) { return base::read_file(folder.path() / "page.md"); }

Record one_worker() { return make_record({}); }
Record two_workers() { return make_record({.workers = 2, .forward = 0.45}); }

// A record given five times was five records, and its interval that of five times the steps.
TEST(Report, CountsAFileOnceHoweverItIsReached) {
  const Folder folder;
  (void)folder.write("a/record.json", to_json(one_worker()));
  (void)folder.write("b/record.json", to_json(two_workers()));
  const auto outcome = report(folder, {"a", "b", "b/record.json", "b", "./b/"});
  const char* sentence = "Every measurement counts once; left out: 3 files that had been read already.";
  EXPECT_THAT(outcome.out, HasSubstr("2 records read"));
  EXPECT_THAT(outcome.out, HasSubstr(sentence));
  EXPECT_THAT(page(folder), HasSubstr(sentence));
  (void)report(folder, {"a", "b"});
  EXPECT_THAT(page(folder), Not(HasSubstr("counts once")));
}

// Copies under other names made [1.26, 1.76] of [0.74, 2.04].
TEST(Report, CountsAMeasurementOnceWhateverItsFilesAreCalled) {
  const Folder folder;
  const auto original = two_workers();
  auto renamed = original;
  renamed.id = "scale-weak-w2-b128-r1";
  renamed.repeat = 1;
  (void)folder.write("r/a.json", to_json(one_worker()));
  (void)folder.write("r/b.json", to_json(original));
  (void)folder.write("r/copy.json", to_json(original));
  (void)folder.write("r/renamed.json", to_json(renamed));
  EXPECT_THAT(report(folder, {"r"}).out, HasSubstr("2 records read"));
  EXPECT_THAT(page(folder),
              HasSubstr("left out: 2 records with the host, start and all times of another one, "
                        "1 of them with other words or settings (r/copy.json is r/b.json, ...)."));
}

TEST(Report, CountsRepeatsThatBeganInTheSameSecond) {
  const Folder folder;
  (void)folder.write("r/a.json", to_json(make_record({})));
  (void)folder.write("r/b.json", to_json(make_record({.repeat = 1, .forward = 0.400000001})));
  EXPECT_THAT(report(folder, {"r"}).out, HasSubstr("2 records read"));
  EXPECT_THAT(page(folder), Not(HasSubstr("left out")));
}

TEST(Report, OfTwoCopiesKeepsTheOneThatDoesNotContradictItself) {
  const Folder folder;
  auto edited = two_workers();
  edited.workers = 4;
  (void)folder.write("r/a-edited.json", to_json(edited));
  (void)folder.write("r/b.json", to_json(two_workers()));
  EXPECT_THAT(report(folder, {"r"}).out, HasSubstr("(r/a-edited.json is r/b.json)"));
  EXPECT_THAT(page(folder), Not(HasSubstr("contradict")));
}

// Steps, ledger and wall time are held against each other: of what really ran they must agree, with
// everything that can lie in a step or between two of them.
TEST(Report, FindsNoContradictionInWhatWasMeasured) {
  const Folder folder;
  const Words training{"train",
                       "--model",
                       "resnet8-cifar",
                       "--data",
                       "synthetic,train=64,test=32",
                       "--no-pin",
                       "--threads",
                       "1",
                       "--workers",
                       "2",
                       "--global-batch",
                       "16",
                       "--bn",
                       "sync"};
  for (const auto& length : {Words{"--epochs", "3", "--out", "r/epochs"},
                             Words{"--window-steps", "3", "--warmup-steps", "1", "--out", "r/window"}}) {
    Words words = training;
    words.insert(words.end(), length.begin(), length.end());
    const auto outcome = run_program(words, {.directory = folder.path()});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  EXPECT_THAT(report(folder, {"r"}).out, HasSubstr("2 records read"));
  EXPECT_THAT(page(folder), Not(HasSubstr("contradict")));
}

TEST(Report, NamesWhatLooksLikeTheRemainsOfARecord) {
  const std::string whole = "is whole JSON without the key 'schema'";
  for (const auto& [name, bytes, is] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"w2.json", "", "is empty"},
           {"w2.json", " \n", "is empty"},
           {"w2.json", "{}", whole},
           {"w2.json", "[ ]\n", "is whole JSON, but no object as records are"},
           {"w2.json", "{\n  \"sche", "ends within its JSON, at byte 9: the file is cut"},
           {"w2/record.json", "{\"kind\": \"scale\", \"schema", "ends within its JSON, at byte 25"},
           {"w2/record.json", "{\"kind\": oops}", "is not JSON: at byte 10 of 14."},
           {"w2/record.json", "{\"kind\": \"scale\"}", whole},
           {"records/w2.json", "{\"schema\": \"metrics-2\"}",
            "is whole JSON, but its 'schema' is \"metrics-2\""},
       }) {
    const Folder folder;
    (void)folder.write("r/w1.json", to_json(one_worker()));
    (void)folder.write("r/" + name, bytes);
    EXPECT_THAT(report(folder, {"r"}).out, HasSubstr("Not read: r/" + name + ", which " + is));
    EXPECT_THAT(page(folder),
                HasSubstr("Not read: r/" + name + ", which " + is.substr(0, is.find_first_of("'\""))));
  }
}

TEST(Report, PassesOverFilesOfOtherPrograms) {
  const Folder folder;
  (void)folder.write("r/w1.json", to_json(one_worker()));
  (void)folder.write("r/report.json", "{\"schema\": \"paceline-report-1\"}");
  (void)folder.write("r/package.json", "{\"name\": \"web\"}");
  (void)folder.write("r/times.json", "[1, 2]\n");
  EXPECT_THAT(report(folder, {"r"}).out, Not(HasSubstr("Not read")));
}

// A study's own report leaves out what it set aside; so does one made of its directory later.
TEST(Report, PassesOverWhatAStudySetAside) {
  const Folder folder;
  (void)folder.write("s/records/w1.json", to_json(one_worker()));
  (void)folder.write("s/earlier/w2.json", to_json(two_workers()));
  const auto outcome = report(folder, {"s"});
  EXPECT_THAT(outcome.out, HasSubstr("1 record read"));
  EXPECT_THAT(outcome.out, HasSubstr("Not read: s/earlier, where a study put"));
  EXPECT_THAT(report(folder, {"s", "s/earlier"}).out, HasSubstr("2 records read"));
  (void)folder.write("mine/earlier/w2.json", to_json(two_workers()));  // no study's
  EXPECT_THAT(report(folder, {"mine"}).out, HasSubstr("1 record read"));
}

TEST(Report, PassesOverLinksThatLeadNowhere) {
  const Folder folder;
  (void)folder.write("r/w1.json", to_json(one_worker()));
  fs::create_symlink("loop.json", folder.path() / "r/loop.json");
  fs::create_symlink("gone.json", folder.path() / "r/dangling.json");
  EXPECT_THAT(report(folder, {"r"}).out, HasSubstr("1 record read"));
}

TEST(Report, SaysWhatItFoundWhereThereIsNoRecord) {
  const Folder folder;
  (void)folder.write("r/w1.json", "");
  const auto outcome = run_program({"report", "r"}, {.directory = folder.path()});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("r: it holds no record"));
  EXPECT_THAT(outcome.err, HasSubstr("r/w1.json is empty"));
}

}  // namespace

// `paceline compare` as a person and as a CI call it, over records that were made by hand.

namespace {

using golden::make_record;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// One and two workers, three repeats 1 % apart; forward and backward take `slower` times as long.
void write_study(const Folder& folder, const std::string& name, double slower,
                 const std::string& model = "resnet18-cifar") {
  for (const int workers : {1, 2})
    for (int repeat = 0; repeat < 3; ++repeat) {
      const double level = slower * (1 + 0.005 * (repeat - 1));
      auto record = make_record(
          {.workers = workers, .repeat = repeat, .forward = 0.4 * level, .backward = 0.8 * level});
      record.model.name = record.settings["model"] = model;
      (void)folder.write(name + "/records/" + record.id + ".json", to_json(record));
    }
}

Outcome compare(const Folder& folder, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"compare", "a", "b"};
  words.insert(words.end(), more.begin(), more.end());
  return run_program(words, {.directory = folder.path()});
}

TEST(Compare, SaysWhatBecameFasterAndPassesACI) {
  const Folder folder;
  write_study(folder, "a", 1);
  write_study(folder, "b", 0.8);
  const auto outcome = compare(folder, {"--fail-on", "regressed", "--tables"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("B is 24 % faster"), HasSubstr("at the best cell of A, "),
                                 HasSubstr("2 cells on both sides: 2 improved."),
                                 HasSubstr("Nothing of the set-ups differs")));
}

TEST(Compare, EndsWithOneWhereSomethingRegressedAndIsAskedTo) {
  const Folder folder;
  write_study(folder, "a", 1);
  write_study(folder, "b", 1.25);
  EXPECT_EQ(compare(folder).code, 0);
  const auto outcome = compare(folder, {"--fail-on", "regressed"});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("slower"), HasSubstr("regressed: 2 of 2 times, 0 accuracies")));
  EXPECT_EQ(compare(folder, {"--fail-on", "regressed", "--noise", "50"}).code, 0);
}

// A CI that compares nothing must not pass.
TEST(Compare, RefusesToPassWhereNothingCouldBeCompared) {
  const Folder folder;
  write_study(folder, "a", 1);
  write_study(folder, "b", 1, "resnet8-cifar");
  const auto outcome = compare(folder, {"--fail-on", "regressed"});
  EXPECT_EQ(outcome.code, 2) << outcome.out;
  EXPECT_THAT(outcome.err, HasSubstr("nothing was compared; the first cell"));
  EXPECT_THAT(compare(folder).out,
              HasSubstr("the baseline's model is resnet18-cifar, here it is resnet8-cifar"));
}

TEST(Compare, WritesTheFormsThatReportWrites) {
  const Folder folder;
  write_study(folder, "a", 1);
  write_study(folder, "b", 0.8);
  const auto outcome =
      compare(folder, {"--markdown", "c.md", "--json", "c.json", "--csv", "csv", "--html", "c.html"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto markdown = base::read_file(folder.path() / "c.md");
  EXPECT_THAT(markdown, AllOf(HasSubstr("B is 24 % faster"), HasSubstr("improved")));
  EXPECT_THAT(base::read_file(folder.path() / "c.json"), HasSubstr("\"type\":\"comparison\""));
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "csv/compare-times.csv"));
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "c.html"));
}

TEST(Compare, OfOneTakesTheRunBeforeIt) {
  const Folder folder;
  write_study(folder, "a", 1);
  EXPECT_THAT(run_program({"compare", "a"}, {.directory = folder.path()}).err,
              HasSubstr("compare a: no earlier run of its kind, model and data is beside it"));
  EXPECT_THAT(run_program({"compare", "nowhere"}, {.directory = folder.path()}).err,
              HasSubstr("there is no such record or directory"));
  write_study(folder, "other", 1, "resnet8-cifar");
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // files' times order runs without events
  write_study(folder, "b", 0.8);
  const auto outcome = run_program({"compare", "b"}, {.directory = folder.path()});
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("b against a"), HasSubstr("B is 24 % faster"))) << outcome.err;
}

TEST(Compare, TakesTwo) {
  const Folder folder;
  write_study(folder, "a", 1);
  EXPECT_THAT(run_program({"compare"}, {.directory = folder.path()}).err,
              AllOf(HasSubstr("compare takes two records or directories"), HasSubstr("got 0")));
  EXPECT_THAT(run_program({"compare", "a", "nowhere"}, {.directory = folder.path()}).err,
              HasSubstr("nowhere: there is no such record or directory"));
  EXPECT_THAT(run_program({"compare", "a", "a", "--fail-on", "improved"}, {.directory = folder.path()}).err,
              Not(testing::IsEmpty()));
}

}  // namespace
}  // namespace paceline::cli

/// `paceline compare` as a person and as a CI call it, over records that were made by hand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "cli/program.h"
#include "golden/records.h"

namespace paceline::cli {
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
  const auto outcome = compare(folder, {"--fail-on", "regressed"});
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

TEST(Compare, TakesTwo) {
  const Folder folder;
  write_study(folder, "a", 1);
  EXPECT_THAT(run_program({"compare", "a"}, {.directory = folder.path()}).err,
              AllOf(HasSubstr("compare takes two records or directories"), HasSubstr("got 1")));
  EXPECT_THAT(run_program({"compare", "a", "nowhere"}, {.directory = folder.path()}).err,
              HasSubstr("nowhere: there is no such record or directory"));
  EXPECT_THAT(run_program({"compare", "a", "a", "--fail-on", "improved"}, {.directory = folder.path()}).err,
              Not(testing::IsEmpty()));
}

}  // namespace
}  // namespace paceline::cli

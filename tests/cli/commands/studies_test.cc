/// `paceline search` as a user types it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/file.h"
#include "cli/commands/small_model.h"
#include "cli/parsed.h"
#include "cli/program.h"
#include "measure/record.h"

namespace paceline::cli {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(SearchArguments, EveryCombinationOfTheListsIsAConfiguration) {
  const auto all =
      settings(kSearch, {"--lr", "0.1,0.03", "--local-batch", "64, 128", "--optimizer", "sgd,lars", "--data",
                         "synthetic,train=96", "--halving", "--seeds", "3"});
  ASSERT_EQ(all.configurations.size(), 8u);
  std::set<std::string> names;
  for (const auto& one : all.configurations) {
    names.insert(one.name);
    EXPECT_EQ(one.options.data, "synthetic,train=96");
  }
  EXPECT_EQ(names.size(), 8u);
  const auto& last = all.configurations.back().options;
  EXPECT_EQ(last.lr, 0.03);
  EXPECT_EQ(last.local_batch, 128);
  EXPECT_EQ(last.rule.kind, engine::UpdateKind::lars);
  EXPECT_EQ(all.configurations.front().name, "local-batch 64, optimizer sgd, lr 0.1");
  EXPECT_TRUE(all.study.search.halving);
  EXPECT_EQ(all.study.search.seeds, 3);
  EXPECT_EQ(all.train.epochs, 4);  // said in a note
}

TEST(SearchArguments, WithoutListsThereIsOneConfiguration) {
  const auto one = settings(kSearch, {"--lr", "0.1"});
  ASSERT_EQ(one.configurations.size(), 1u);
  EXPECT_EQ(one.configurations[0].name, "as given");
}

TEST(SearchArguments, RefusesWhatIsNoValueAndListsOfWhatIsNotSearched) {
  EXPECT_THAT(complaint(kSearch, {"--lr", "0.1,high"}),
              HasSubstr("--lr must be a number above 0, got 'high'"));
  EXPECT_THAT(complaint(kSearch, {"--lr", "0.1,,0.2"}), HasSubstr("--lr must be a list"));
  EXPECT_THAT(complaint(kSearch, {"--seed", "1,2"}), HasSubstr("--seed must be a whole number"));
  EXPECT_THAT(complaint(kSearch, {"--choose-on", "test"}),
              HasSubstr("--choose-on must be one of validation"));
  EXPECT_THAT(complaint(kSearch, {"--test-set", "last"}), HasSubstr("is not an option of search"));
  EXPECT_THAT(complaint(kTrain, {"--lr", "0.1,0.2"}), HasSubstr("--lr must be a number above 0"));
}

TEST(SearchArguments, OptionsThatNoConfigurationReadsAreSaid) {
  const auto notes = [](std::vector<std::string> words) {
    words.insert(words.end(), {"--local-batch", "8", "--epochs", "2"});
    return settings(kSearch, words).notes;
  };
  EXPECT_THAT(notes({"--lr", "0.1,0.2", "--step-factor", "0.5"}),
              ElementsAre("--step-factor changes nothing without --schedule step"));
  EXPECT_THAT(notes({"--schedule", "step,cosine", "--step-factor", "0.5"}), IsEmpty());
  EXPECT_THAT(notes({"--lr-batch", "64"}),
              ElementsAre(HasSubstr("--lr-batch changes nothing without --scale-lr")));
  EXPECT_THAT(notes({"--lr-batch", "64", "--scale-lr", "none,linear"}), IsEmpty());
  EXPECT_THAT(notes({"--lr", "0.1,0.2", "--flip", "none", "--no-augment"}),
              ElementsAre("--flip changes nothing with --no-augment"));
  EXPECT_THAT(notes({"--warmup", "3"}), ElementsAre(HasSubstr("--warmup 3 is longer than the 2 epochs")));
}

// Four trainings were run of which two were the same.
TEST(SearchArguments, OfConfigurationsThatDifferInNothingThatIsReadOneIsTrained) {
  const auto all =
      settings(kSearch, {"--optimizer", "sgd,adam", "--momentum", "0.9,0.5", "--local-batch", "8"});
  std::vector<std::string> names;
  for (const auto& one : all.configurations) names.push_back(one.name);
  EXPECT_THAT(names, ElementsAre("optimizer sgd, momentum 0.9", "optimizer sgd, momentum 0.5",
                                 "optimizer adam, momentum 0.9"));
  EXPECT_THAT(all.notes,
              Contains(HasSubstr("'optimizer adam, momentum 0.5' is left out: it is the same training as "
                                 "'optimizer adam, momentum 0.9'")));
  EXPECT_EQ(settings(kSearch, {"--lookahead-keep", "0.3,0.5", "--lr", "0.1,0.2"}).configurations.size(), 2u);
}

TEST(Search, LeavesOneEvaluationAndAReport) {
  const Folder folder;
  (void)folder.write("m.toml", kSmallModel);
  const std::vector<std::string> words{"search",
                                       "--model",
                                       "m.toml",
                                       "--data",
                                       "synthetic,train=320,test=60",
                                       "--lr",
                                       "0.0001,0.05,0.001",
                                       "--epochs",
                                       "2",
                                       "--halving",
                                       "--local-batch",
                                       "32",
                                       "--threads",
                                       "1",
                                       "--out",
                                       "s"};
  const auto first = run_program(words, {.directory = folder.path()});
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out,
              AllOf(HasSubstr("is best: "), HasSubstr("read once"), HasSubstr("rung 1 of 2: epoch 1"),
                    HasSubstr("a tenth of every training class"), Not(HasSubstr("Not measured"))));
  const auto chosen = measure::read_record(folder.path() / "s/records/search-chosen.json");
  EXPECT_EQ(chosen.evaluation.value().reads, 60);
  const auto again = run_program(words, {.directory = folder.path()});
  EXPECT_THAT(again.out, AllOf(HasSubstr(" kept from before)"), HasSubstr("read once")));
  const auto report = run_program({"report", "s", "--tables"}, {.directory = folder.path()});
  EXPECT_THAT(report.out,
              AllOf(HasSubstr("is the best on validation"), Not(HasSubstr("Every measurement counts once"))));
}

TEST(Search, SaysWhereThereIsNothingToHalve) {
  const Folder folder;
  (void)folder.write("m.toml", kSmallModel);
  const auto done =
      run_program({"search", "--model", "m.toml", "--data", "synthetic,train=96,test=20", "--lr", "0.05,0.01",
                   "--epochs", "1", "--halving", "--local-batch", "16", "--threads", "1", "--out", "s"},
                  {.directory = folder.path()});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("--halving changes nothing: there is nothing to drop"));
}

}  // namespace
}  // namespace paceline::cli

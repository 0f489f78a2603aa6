/// `paceline evaluate` as a user types it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/commands/small_model.h"
#include "cli/program.h"
#include "measure/record.h"

namespace paceline::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(Evaluate, TakesFromTheRecordWhatIsNotGivenAndAgreesToTheLastDigit) {
  const Folder folder;
  (void)folder.write("m.toml", kSmallModel);
  const auto trained =
      run_program({"train", "--model", "m.toml", "--data", "synthetic,train=96,test=50", "--local-batch",
                   "16", "--epochs", "2", "--label-smoothing", "0.1", "--json", "--out", "t"},
                  {.directory = folder.path()});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const auto record = measure::record_from_json(trained.out, "train");
  for (const std::string workers : {"1", "2"}) {
    const auto evaluated = run_program({"evaluate", "t", "--data", "synthetic,train=96,test=50", "--workers",
                                        workers, "--json", "--out", "e" + workers},
                                       {.directory = folder.path()});
    ASSERT_EQ(evaluated.code, 0) << evaluated.err;
    const auto evaluation = measure::record_from_json(evaluated.out, "evaluate").evaluation.value();
    EXPECT_EQ(evaluation.loss, record.epochs.back().test_loss) << workers;
    EXPECT_EQ(static_cast<double>(evaluation.correct) / 50, record.epochs.back().test_accuracy);
    EXPECT_EQ(evaluation.reads, 50);
    EXPECT_TRUE(std::filesystem::exists(folder.path() / ("e" + workers) / "evaluation.json"));
  }
  const auto shown = run_program({"evaluate", "t", "--out", "e", "--tables"}, {.directory = folder.path()});
  EXPECT_THAT(shown.out, Not(HasSubstr("in the training"))) << "nothing differs";
  const auto other = run_program({"evaluate", "t", "--data", "synthetic,train=96,test=64", "--out", "e3"},
                                 {.directory = folder.path()});
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_THAT(other.out,
              HasSubstr("data: synthetic,train=96,test=64 here, synthetic,train=96,test=50 in the training"));
  EXPECT_THAT(shown.out, AllOf(HasSubstr("Accuracy by class"), HasSubstr(" taken for "),
                               HasSubstr("The most confident mistakes"), HasSubstr("top-5")));
}

TEST(Evaluate, SaysWhatNeitherRecordNorCheckpointSays) {
  const Folder folder;
  (void)folder.write("m.toml", kSmallModel);
  const auto trained = run_program({"train", "--model", "m.toml", "--data", "synthetic,train=96,test=50",
                                    "--local-batch", "16", "--out", "t"},
                                   {.directory = folder.path()});
  ASSERT_EQ(trained.code, 0) << trained.err;
  std::filesystem::remove(folder.path() / "t/record.json");
  const RunConditions here{.directory = folder.path()};
  EXPECT_THAT(run_program({"evaluate", "t", "--data", "synthetic,train=96,test=50"}, here).err,
              HasSubstr("says with which model it was trained; give it, as in --model"));
  EXPECT_THAT(run_program({"evaluate", "t", "--model", "m.toml"}, here).err,
              HasSubstr("says with which data it was trained"));
  const auto given = run_program({"evaluate", "t", "--model", "m.toml", "--data",
                                  "synthetic,train=96,test=50", "--local-batch", "16", "--out", "e"},
                                 here);
  EXPECT_EQ(given.code, 0) << given.err;
  EXPECT_THAT(run_program({"evaluate"}, here).err, HasSubstr("evaluate takes one checkpoint"));
  EXPECT_THAT(run_program({"evaluate", "nowhere"}, here).err, HasSubstr("is neither a checkpoint nor"));
}

}  // namespace
}  // namespace paceline::cli

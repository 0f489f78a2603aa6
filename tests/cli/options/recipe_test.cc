// What a recipe sets, and what of it is refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/options/recipe.h"
#include "cli/parsed.h"
#include "cli/program.h"

namespace paceline::cli {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

/// A recipe on disk for the length of a test.
class ARecipe : public testing::Test {
 protected:
  std::string recipe(const std::string& text, const std::string& name = "r.toml") {
    const auto path =
        std::filesystem::path(testing::TempDir()) / ("paceline-" + std::to_string(::getpid()) + name);
    std::ofstream(path) << text;
    files_.push_back(path);
    return path.string();
  }
  void TearDown() override {
    for (const auto& file : files_) std::filesystem::remove(file);
  }

 private:
  std::vector<std::filesystem::path> files_;
};

TEST_F(ARecipe, SetsWhatTheCommandLineDoesNot) {
  const auto file = recipe("model = 'mnist-cnn'\nlr = 0.5\nnesterov = true\nseed = 3\n");
  const auto s = settings(kTrain, {"--lr", "0.25", file});
  EXPECT_EQ(s.train.model, "mnist-cnn");
  EXPECT_DOUBLE_EQ(s.train.lr, 0.25);
  EXPECT_TRUE(s.train.rule.nesterov);
  EXPECT_EQ(s.train.seed, 3u);
  EXPECT_THAT(s.recipe, AllOf(HasSubstr(file), HasSubstr("model, lr, nesterov, seed")));
  EXPECT_THAT(s.given, AllOf(Contains(measure::Setting("model")), Contains(measure::Setting("lr"))));
}

TEST_F(ARecipe, YieldsToTheCommandLinesRival) {
  const auto file = recipe("local-batch = 32\nepochs = 3\n");
  const auto s = settings(kTrain, {file, "--global-batch", "64", "--steps", "5"});
  EXPECT_EQ(s.train.local_batch, 0);
  EXPECT_EQ(s.train.global_batch, 64);
  EXPECT_DOUBLE_EQ(s.train.epochs, 0);
  EXPECT_EQ(s.train.steps, 5);
}

TEST_F(ARecipe, MayHoldLists) {
  const auto file = recipe("workers = [1, 2]\nbatches = [32, 64]\nmode = \"strong\"\n");
  const auto s = settings(kScale, {file});
  EXPECT_THAT(s.study.scale.workers, ElementsAre(1, 2));
  EXPECT_THAT(s.study.scale.batches, ElementsAre(32, 64));
  EXPECT_EQ(s.study.scale.mode, "strong");
}

TEST_F(ARecipe, LeavesOutKeysOfOtherCommandsAndSaysSo) {
  const auto file = recipe("lr = 0.1\nbatches = [32, 64]\n");
  const auto s = settings(kTrain, {file});
  EXPECT_THAT(s.notes, Contains(HasSubstr("train does not use batches")));
}

TEST_F(ARecipe, TakesTheNumbersThatTheCommandLineTakes) {
  // A recipe used to take `workers = 1.0`, which the command line refuses.
  EXPECT_THAT(complaint(kTrain, {"--workers", "1.0"}), HasSubstr("must be a whole number"));
  EXPECT_THAT(complaint(kTrain, {recipe("workers = 1.0\n")}), HasSubstr("must be a whole number"));
  EXPECT_THAT(complaint(kScale, {recipe("workers = [1, 2.0]\n")}),
              HasSubstr("whole number from 1 to 4096, got '2.0'"));
  for (const auto& [written, epochs] :
       {std::pair{"11.5", 11.5}, {"12.0", 12.0}, {"12", 12.0}, {"1e2", 100.0}}) {
    EXPECT_EQ(settings(kTrain, {"--epochs", written}).train.epochs, epochs);
    EXPECT_EQ(settings(kTrain, {recipe(std::string("epochs = ") + written + "\n")}).train.epochs, epochs);
  }
  EXPECT_EQ(settings(kTrain, {recipe("weight-decay = 5e-4\n")}).train.rule.weight_decay, 5e-4);
}

TEST_F(ARecipe, CountsItsQuickTableWithQuickOnly) {
  const auto file = recipe("epochs = 30\nlr = 0.1\n[quick]\nsteps = 12\nlr = 0.2\n");
  EXPECT_EQ(settings(kTrain, {file}).train.epochs, 30);
  const auto quick = settings(kTrain, {file, "--quick", "--lr", "0.3"});
  EXPECT_EQ(quick.train.steps, 12);
  EXPECT_EQ(quick.train.epochs, 0);  // its rival, given earlier
  EXPECT_EQ(quick.train.lr, 0.3);    // the command line wins
  EXPECT_THAT(complaint(kTrain, {recipe("lr = 0.1\n", "plain.toml"), "--quick"}), HasSubstr("has none"));
  EXPECT_THAT(complaint(kTrain, {"--quick"}), HasSubstr("no recipe is given"));
  EXPECT_THAT(complaint(kTrain, {recipe("[quick]\nlr = -1\n", "bad.toml"), "--quick"}),
              HasSubstr("bad.toml:2: lr"));
}

TEST_F(ARecipe, IsCheckedWhetherItsValuesCountOrNot) {
  // What is wrong in [quick] used to be found by the first --quick.
  const auto in_quick = [&](const std::string& line) {
    return complaint(kTrain, {recipe("lr = 0.1\n[quick]\n" + line + "\n")});
  };
  EXPECT_THAT(in_quick("lr = -1"), HasSubstr(".toml:3: lr must be a number above 0, got '-1'"));
  EXPECT_THAT(in_quick("workers = 1.0"), HasSubstr(".toml:3: workers must be a whole number"));
  EXPECT_THAT(in_quick("optimizer = 'sdg'"), HasSubstr("did you mean 'sgd'?"));
  EXPECT_THAT(in_quick("steps = 2\nepochs = 2"), HasSubstr("are both given"));
  EXPECT_EQ(in_quick("lr = 1"), "");
  // Nor does a value count that the command line replaces.
  EXPECT_THAT(complaint(kTrain, {recipe("lr = -1\n"), "--lr", "0.1"}), HasSubstr(".toml:1: lr must be"));
  // What depends on the other layers is none of its own faults.
  EXPECT_EQ(complaint(kTrain, {recipe("nesterov = true\n[quick]\nmomentum = 0\n")}), "");
}

struct BadRecipe {
  std::string text;
  std::string says;  ///< behind the file's name
};

class BadRecipes : public testing::TestWithParam<BadRecipe> {};

TEST_P(BadRecipes, AreNamedWithTheirLine) {
  const auto& [text, says] = GetParam();
  const auto path =
      std::filesystem::path(testing::TempDir()) / ("paceline-bad-" + std::to_string(::getpid()) + ".toml");
  std::ofstream(path) << text;
  EXPECT_THAT(complaint(kTrain, {path.string()}), HasSubstr(path.string() + says));
  std::filesystem::remove(path);
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadRecipes,
    testing::Values(
        BadRecipe{"model = 'mnist-cnn'\n\nmomentun = 0.9\n",
                  ":3: momentun is not an option of train; did you mean momentum?"},
        BadRecipe{"batch = 32\n", ":1: batch is not an option, because with several workers"},
        BadRecipe{"lr = 0.1\nepochs = -1\n", ":2: epochs must be a number above 0, got '-1'"},
        BadRecipe{"steps = 2.5\n", ":1: steps must be a whole number of at least 1, got '2.5'"},
        BadRecipe{"workers = 1.0\n", ":1: workers must be a whole number from 1 to 4096, got '1.0'"},
        BadRecipe{"steps = 1e3\n", ":1: steps must be a whole number of at least 1, got '1000.0'"},
        BadRecipe{"workers = '1x'\n", ":1: workers must be a whole number from 1"},
        BadRecipe{"lr = 'fast'\n", ":1: lr must be a number above 0, got 'fast'"},
        BadRecipe{"lr = \n", ":1: not TOML"}, BadRecipe{"lr = 0.1\nlr = 0.2\n", ":2: not TOML"},
        BadRecipe{"seed = 1\n[train]\nlr = 1\n", ":2: the only table of a recipe is [quick]"},
        BadRecipe{"nesterov = 'yes'\n", ":1: nesterov must be true or false"},
        BadRecipe{"local-batch = 1\nglobal-batch = 2\n", ":1: local-batch 1 and"},
        BadRecipe{"data = 2020-01-01\n", ":1: data must be a text"}));

}  // namespace

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kSite =
    "[sbatch]\naccount = \"physics\"\nmemory = \"16G\"\nsetup = [\"module load gcc\", \"export A=1\"]\n"
    "[launch]\nby = \"here\"\nmeet-within = 300\n[data]\ndrawn = \"synthetic,train=64\"\n";

std::string refusal(const std::string& text) {
  const Folder folder;
  try {
    (void)read_site({folder.write("site.toml", text)}, kTrain);
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::usage) << text;
    return error.what();
  }
  return "";
}

TEST(Site, GivesEachCommandWhatItReadsAndTheLaterFileWins) {
  const Folder folder;
  const auto host = folder.write("host.toml", kSite),
             user = folder.write("user.toml", "[sbatch]\naccount = \"chemistry\"\n");
  const auto batch = read_site({host, user}, kSbatch);
  ASSERT_EQ(batch.given.size(), 3u);
  EXPECT_EQ(batch.given.back().text, "chemistry");
  EXPECT_THAT(batch.given.back().where, HasSubstr("user.toml:2: account"));
  EXPECT_EQ(batch.data.at("drawn"), "synthetic,train=64");
  const auto train = read_site({host}, kTrain);
  ASSERT_EQ(train.given.size(), 1u);
  EXPECT_EQ(train.given.front().option->name(), "meet-within");
  EXPECT_TRUE(read_site({}, kTrain).given.empty());
}

TEST(Site, RefusesWhatCouldChangeAFigure) {
  for (const char* text :
       {"lr = 0.1\n", "[sbatch]\nlr = 0.1\n", "[launch]\nlr = 0.1\n", "[train]\nlr = 0.1\n"})
    EXPECT_THAT(refusal(text), AllOf(HasSubstr("site.toml:"), HasSubstr("figures"))) << text;
  EXPECT_THAT(refusal("[sbatch]\nacount = \"x\"\n"), HasSubstr("account"));
  EXPECT_THAT(refusal("[sbatch]\nmemory = \"much\"\n"), HasSubstr("site.toml:2: memory"));
  // What follows the NUL would be run in the job's script.
  EXPECT_THAT(refusal("[sbatch]\nstage = \"/tmp\\u0000$(reboot)\"\n"), HasSubstr("site.toml:2: stage"));
  EXPECT_EQ(refusal("[sbatch]\nconstraint = \"[a|b]&c*2\"\ntime = \"1-02:30\"\n"), "");
  EXPECT_THAT(refusal("[data]\ncifar10 = \"synthetic\"\n"), HasSubstr("choose another name"));
  EXPECT_THAT(refusal("[sbatch\n"), HasSubstr("site.toml"));
}

TEST(Site, IsReadByTheProgramAndWhatIsTypedWins) {
  const Folder folder;
  std::filesystem::create_directories(folder.path() / "paceline");
  folder.write("paceline/site.toml", kSite);
  const RunConditions there{.directory = folder.path(),
                            .variables = {{"XDG_CONFIG_HOME", folder.path().string()}}};
  const auto run = [&](const std::vector<std::string>& words) {
    const auto outcome = run_program(words, there);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  };
  const auto plan = run({"sbatch", "--plan", "--account", "own", "--", "train", "--data", "drawn",
                         "--local-batch", "16", "--steps", "2"});
  EXPECT_THAT(plan,
              AllOf(HasSubstr("account own   typed"), HasSubstr("memory 16G   "), HasSubstr("site.toml:3")));
  EXPECT_THAT(plan, HasSubstr("drawn is synthetic,train=64"));
  EXPECT_THAT(run({"launch", "-n", "2", "--print", "--", "train"}), HasSubstr("MASTER_ADDR=127.0.0.1"));
  folder.write("paceline/site.toml", "[launch]\nlr = 0.1\n");
  EXPECT_EQ(run_program({"train", "--steps", "1"}, there).code, 2);
}

}  // namespace
}  // namespace paceline::cli

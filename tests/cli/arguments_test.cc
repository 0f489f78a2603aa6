#include "cli/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "base/error.h"

namespace paceline::cli {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr Command kAll[] = {kTrain, kSweep, kScale, kConverge, kStudy, kReport, kDoctor, kData};

Settings settings(Command command, const std::vector<std::string>& words) {
  return parse(command, words).settings;
}

std::string complaint(Command command, const std::vector<std::string>& words) {
  try {
    (void)parse(command, words);
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::usage);
    return error.what();
  }
  return "";
}

/// A recipe on disk for the length of a test.
class Arguments : public testing::Test {
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

// --- the table
// -------------------------------------------------------------------------------------------------

TEST_F(Arguments, EveryRowReadsBackItsOwnDefault) {
  for (const auto& option : options()) {
    for (const Command command : kAll) {
      if (!(option.commands & command)) continue;
      Settings before = defaults(command);
      const auto text = option.get(before);
      if (text.empty()) continue;
      Settings after = defaults(command);
      option.set(after, text);
      EXPECT_EQ(option.get(after), text) << option.name << " of " << command_name(command);
    }
  }
}

TEST_F(Arguments, EveryRowIsReachableFromItsCommandLine) {
  for (const auto& option : options()) {
    for (const Command command : kAll) {
      if (!(option.commands & command)) continue;
      EXPECT_EQ(find_option(option.name, command), &option)
          << "two rows of one name for " << command_name(command);
      EXPECT_THAT(help_text(command), HasSubstr(option.name));
    }
  }
}

TEST_F(Arguments, EverySettingOfARecordIsAnOption) {
  for (const auto kind : {engine::UpdateKind::sgd, engine::UpdateKind::adam, engine::UpdateKind::rmsprop,
                          engine::UpdateKind::adadelta, engine::UpdateKind::lars}) {
    for (const auto schedule : {train::ScheduleKind::step, train::ScheduleKind::one_cycle}) {
      train::Options train;
      train.rule.kind = kind;
      train.schedule.kind = schedule;
      for (const auto& [name, value] : train::settings(train))
        EXPECT_NE(find_option(name, kTrain), nullptr) << name;
    }
  }
}

// --- the command line
// ------------------------------------------------------------------------------------------

TEST_F(Arguments, EveryTrainingOptionArrives) {
  const auto s = settings(kTrain, {"--model",
                                   "mnist-cnn",
                                   "--data=mnist:d",
                                   "--workers",
                                   "2",
                                   "--threads",
                                   "3",
                                   "--global-batch",
                                   "64",
                                   "--epochs",
                                   "1.5",
                                   "--precision",
                                   "bf16",
                                   "--optimizer",
                                   "adamw",
                                   "--lr",
                                   "0.01",
                                   "--weight-decay",
                                   "0.1",
                                   "--schedule",
                                   "one-cycle",
                                   "--warmup",
                                   "2",
                                   "--scale-lr",
                                   "linear",
                                   "--lr-batch",
                                   "32",
                                   "--bn",
                                   "ghost:16",
                                   "--shard",
                                   "8",
                                   "--seed",
                                   "7",
                                   "--device",
                                   "reference",
                                   "--out",
                                   "o",
                                   "--resume",
                                   "c",
                                   "--label-smoothing",
                                   "0.1",
                                   "--no-augment",
                                   "--bucket-mb",
                                   "2.5",
                                   "--loader-threads",
                                   "4",
                                   "--no-pin",
                                   "--log-steps",
                                   "--evaluate-every",
                                   "5",
                                   "--deadline",
                                   "9",
                                   "--json"});
  const auto& t = s.train;
  EXPECT_EQ(t.model, "mnist-cnn");
  EXPECT_EQ(t.data, "mnist:d");
  EXPECT_EQ(t.workers, 2);
  EXPECT_EQ(t.threads, 3);
  EXPECT_EQ(t.global_batch, 64);
  EXPECT_EQ(t.local_batch, 0);
  EXPECT_DOUBLE_EQ(t.epochs, 1.5);
  EXPECT_EQ(t.precision, "bf16");
  EXPECT_EQ(t.rule.kind, engine::UpdateKind::adamw);
  EXPECT_DOUBLE_EQ(t.lr, 0.01);
  EXPECT_DOUBLE_EQ(t.rule.weight_decay, 0.1);
  EXPECT_EQ(t.schedule.kind, train::ScheduleKind::one_cycle);
  EXPECT_DOUBLE_EQ(t.schedule.warmup_epochs, 2);
  EXPECT_EQ(t.scale_lr, train::LrScaling::linear);
  EXPECT_EQ(t.lr_batch, 32);
  EXPECT_EQ(t.batch_norm, engine::BatchNormMode::ghost);
  EXPECT_EQ(t.ghost_size, 16);
  EXPECT_EQ(t.shard, 8);
  EXPECT_EQ(t.seed, 7u);
  EXPECT_EQ(t.device, "reference");
  EXPECT_EQ(t.out, "o");
  EXPECT_EQ(t.resume, "c");
  EXPECT_DOUBLE_EQ(t.label_smoothing, 0.1);
  EXPECT_FALSE(t.augment);
  EXPECT_DOUBLE_EQ(t.bucket_mb, 2.5);
  EXPECT_EQ(t.loader_threads, 4);
  EXPECT_FALSE(t.pin);
  EXPECT_TRUE(t.log_steps);
  EXPECT_EQ(t.evaluate_every, 5);
  EXPECT_EQ(t.deadline_s, 9);
  EXPECT_TRUE(s.json);
}

TEST_F(Arguments, ScalingOptionsArrive) {
  const auto s = settings(kScale, {"--workers", "1,2", "--batches", "32,64", "--mode", "both", "--repeats",
                                   "5", "--window-steps", "20", "--warmup-steps", "3"});
  EXPECT_THAT(s.study.scale.workers, ElementsAre(1, 2));
  EXPECT_THAT(s.study.scale.batches, ElementsAre(32, 64));
  EXPECT_EQ(s.study.scale.mode, "both");
  EXPECT_EQ(s.study.scale.repeats, 5);
  EXPECT_EQ(s.train.window_steps, 20);
  EXPECT_EQ(s.train.warmup_steps, 3);
}

TEST_F(Arguments, CellsAreTimedOverWholeEpochsUnlessToldSteps) {
  EXPECT_EQ(settings(kScale, {}).train.window_steps, train::Options::kWholeEpoch);
  EXPECT_EQ(settings(kTrain, {}).train.window_steps, 0);
}

TEST_F(Arguments, SweepTakesAutomaticBatchesAndScaleDoesNot) {
  EXPECT_TRUE(settings(kSweep, {"--batches", "auto"}).study.sweep.automatic_batches);
  EXPECT_THAT(complaint(kScale, {"--batches", "auto"}), HasSubstr("--batches auto is for sweep"));
}

TEST_F(Arguments, ConvergeComparesRemediesOrNumbersOfWorkers) {
  EXPECT_TRUE(settings(kConverge, {"--workers", "4"}).study.converge.workers.empty());
  EXPECT_EQ(settings(kConverge, {"--workers", "4"}).train.workers, 4);
  EXPECT_THAT(settings(kConverge, {"--compare", "workers", "--workers", "1,3"}).study.converge.workers,
              testing::ElementsAre(1, 3));
  EXPECT_THAT(settings(kStudy, {"--compare", "workers"}).study.converge.workers,
              testing::ElementsAre(1, 2, 4));
}

TEST_F(Arguments, DefaultsTakenAreSaid) {
  const auto s = settings(kTrain, {});
  EXPECT_EQ(s.train.local_batch, 128);
  EXPECT_THAT(s.notes, Contains(HasSubstr("local batch 128")));
  EXPECT_THAT(s.notes, Contains(HasSubstr("1 epoch")));
}

TEST_F(Arguments, AnOptimizerBringsItsUsualRateUnlessOneIsGiven) {
  EXPECT_DOUBLE_EQ(settings(kTrain, {"--optimizer", "adadelta"}).train.lr, 1);
  EXPECT_DOUBLE_EQ(settings(kTrain, {"--lr", "0.5", "--optimizer", "adadelta"}).train.lr, 0.5);
  EXPECT_DOUBLE_EQ(settings(kTrain, {"--optimizer", "adam"}).train.rule.momentum, 0);
}

TEST_F(Arguments, ASwitchTakesAValueAtItsWord) {
  for (const char* off :
       {"--augment=false", "--augment=no", "--augment=0", "--no-augment", "--no-augment=true"})
    EXPECT_FALSE(settings(kTrain, {off}).train.augment) << off;
  for (const char* on : {"--augment", "--augment=true", "--augment=yes", "--augment=1", "--no-augment=false"})
    EXPECT_TRUE(settings(kTrain, {on}).train.augment) << on;
}

struct Bad {
  Command command;
  std::vector<std::string> words;
  std::string says;
};

class BadWords : public testing::TestWithParam<Bad> {};

TEST_P(BadWords, GetOneSentenceThatNamesThem) {
  const auto& [command, words, says] = GetParam();
  const auto text = complaint(command, words);
  EXPECT_THAT(text, HasSubstr(says));
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadWords,
    testing::Values(
        Bad{kTrain, {"--batch", "32"}, "--batch is not an option, because with several workers"},
        Bad{kTrain, {"--batch=32"}, "--local-batch b is what one worker takes"},
        Bad{kTrain, {"--batch-size", "32"}, "--batch-size is not an option, because with several workers"},
        Bad{kSweep, {"--batch-size", "32"}, "--batches LIST says which sizes are compared"},
        Bad{kTrain, {"--gpus", "2"}, "--gpus is not an option: --workers N says how many"},
        Bad{kTrain, {"--augment=maybe"}, "--augment must be true or false, got 'maybe'"},
        Bad{kTrain, {"--augment", "--augment=no"}, "contradict each other"},
        Bad{kTrain, {"--lrr", "0.1"}, "--lrr is not an option of train; did you mean --lr?"},
        Bad{kTrain, {"--epoch", "3"}, "did you mean --epochs?"},
        Bad{kTrain, {"--mode", "weak"}, "--mode is not an option of train; it belongs to scale"},
        Bad{kTrain, {"--quite-another-thing"}, "'paceline train --help' lists them"},
        Bad{kTrain, {"-b", "3"}, "options have long names only"},
        Bad{kTrain, {"--global-batch", "0"}, "--global-batch must be a whole number from 1"},
        Bad{kTrain, {"--global-batch", "-5"}, "got '-5'"},
        Bad{kTrain, {"--local-batch", "0"}, "--local-batch must be"},
        Bad{kTrain, {"--local-batch", "32", "--global-batch", "64"}, "are both given"},
        Bad{kTrain, {"--epochs", "1", "--steps", "2"}, "are both given"},
        Bad{kTrain, {"--augment", "--no-augment"}, "contradict each other"},
        Bad{kTrain, {"--epochs", "0"}, "--epochs must be a number above 0, got '0'"},
        Bad{kTrain, {"--lr", "fast"}, "--lr must be a number above 0, got 'fast'"},
        Bad{kTrain, {"--lr"}, "--lr needs a value"}, Bad{kTrain, {"--out", ""}, "--out must not be empty"},
        Bad{kTrain, {"--optimizer", "sgdd"}, "did you mean 'sgd'?"},
        Bad{kTrain, {"--schedule", "cosin"}, "did you mean 'cosine'?"},
        Bad{kTrain, {"--schedule", "cos"}, "did you mean 'cosine'?"},
        Bad{kTrain, {"--precision", "fp16"}, "--precision must be one of auto, fp32, bf16, got 'fp16'"},
        Bad{kTrain, {"--device", "gpu"}, "--device must be one of cpu, reference"},
        Bad{kTrain, {"--bn", "ghost"}, "--bn must be one of local, sync, ghost:N"},
        Bad{kTrain, {"--bn", "ghost:0"}, "--bn has 'ghost:0', whose N must be a whole number from 1"},
        Bad{kTrain, {"--bn", "ghost:N"}, "--bn has 'ghost:N', whose N must be a whole number from 1"},
        Bad{kTrain, {"--steps", "2.5"}, "--steps must be a whole number of at least 1, got '2.5'"},
        Bad{kComm, {"--sizes", "1K:1.5M"}, "--sizes has '1.5M', whose number must be a whole number from 1"},
        Bad{kTrain, {"--workers", "1,2"}, "--workers must be a whole number from 1"},
        Bad{kTrain, {"--nesterov", "--momentum", "0"}, "--nesterov needs"},
        Bad{kTrain, {"recipe.tml"}, "'recipe.tml' is neither an option nor a recipe"},
        Bad{kTrain, {"a.toml", "b.toml"}, "train takes one recipe"},
        Bad{kTrain, {"nowhere.toml"}, "nowhere.toml: there is no such recipe"},
        Bad{kScale, {"--batches", "32", "128"}, "lists are written with commas"},
        Bad{kScale, {"--batches", "32,,128"}, "--batches must be a list"},
        Bad{kScale, {"--workers", "1,0"}, "--workers must be a whole number from 1"},
        Bad{kScale, {"--local-batch", "32"}, "--local-batch is not an option of scale"},
        Bad{kConverge, {"--large-batch", "16"}, "must be larger than --baseline-batch 128"},
        Bad{kConverge, {"--workers", "1,2"}, "give one, or --compare workers"},
        Bad{kConverge, {"--compare", "workers", "--workers", "4"}, "needs at least two numbers"},
        Bad{kConverge, {"--compare", "batches"}, "--compare must be one of remedies, workers"},
        Bad{kReport, {}, "report takes the records"},
        Bad{kReport, {"r.json", "--html"}, "--html needs a value"},
        Bad{kData, {"inf", "synthetic"}, "data takes what to do and a data set"},
        Bad{kDoctor, {"everything"}, "'everything' is not expected"}));

// --- recipes
// ---------------------------------------------------------------------------------------------------

TEST_F(Arguments, ARecipeSetsWhatTheCommandLineDoesNot) {
  const auto file = recipe("model = 'mnist-cnn'\nlr = 0.5\nnesterov = true\nseed = 3\n");
  const auto s = settings(kTrain, {"--lr", "0.25", file});
  EXPECT_EQ(s.train.model, "mnist-cnn");
  EXPECT_DOUBLE_EQ(s.train.lr, 0.25);
  EXPECT_TRUE(s.train.rule.nesterov);
  EXPECT_EQ(s.train.seed, 3u);
  EXPECT_THAT(s.recipe, AllOf(HasSubstr(file), HasSubstr("model, lr, nesterov, seed")));
  EXPECT_THAT(s.given, AllOf(Contains("model"), Contains("lr")));
}

TEST_F(Arguments, TheCommandLineReplacesARecipesRival) {
  const auto file = recipe("local-batch = 32\nepochs = 3\n");
  const auto s = settings(kTrain, {file, "--global-batch", "64", "--steps", "5"});
  EXPECT_EQ(s.train.local_batch, 0);
  EXPECT_EQ(s.train.global_batch, 64);
  EXPECT_DOUBLE_EQ(s.train.epochs, 0);
  EXPECT_EQ(s.train.steps, 5);
}

TEST_F(Arguments, ListsInRecipesAreLists) {
  const auto file = recipe("workers = [1, 2]\nbatches = [32, 64]\nmode = \"strong\"\n");
  const auto s = settings(kScale, {file});
  EXPECT_THAT(s.study.scale.workers, ElementsAre(1, 2));
  EXPECT_THAT(s.study.scale.batches, ElementsAre(32, 64));
  EXPECT_EQ(s.study.scale.mode, "strong");
}

TEST_F(Arguments, KeysOfOtherCommandsAreLeftOutAndSaid) {
  const auto file = recipe("lr = 0.1\nbatches = [32, 64]\n");
  const auto s = settings(kTrain, {file});
  EXPECT_THAT(s.notes, Contains(HasSubstr("train does not use batches")));
}

TEST_F(Arguments, ANumberOfARecipeIsTakenWhereTheCommandLineTakesIt) {
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

TEST_F(Arguments, TheQuickTableOfARecipeCountsWithQuickOnly) {
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

TEST_F(Arguments, ARecipeIsCheckedWhetherItsValuesCountOrNot) {
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

TEST_F(Arguments, DataIsToldHowToBeOpened) {
  const auto s =
      settings(kTrain, {"--data", "folder:x,size=32", "--validation-split", "0.2", "--bad-images", "skip"});
  EXPECT_EQ(s.train.validation_split, 0.2);
  EXPECT_TRUE(s.train.skip_bad_images);
  EXPECT_FALSE(settings(kTrain, {}).train.skip_bad_images);
  EXPECT_THAT(complaint(kTrain, {"--bad-images", "ignore"}), HasSubstr("must be one of error, skip"));
  EXPECT_THAT(complaint(kTrain, {"--validation-split", "1"}), HasSubstr("--validation-split"));
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
        BadRecipe{"seed = 1\n[train]\nlr = 1\n", ":2: a recipe has no table but [quick]"},
        BadRecipe{"nesterov = 'yes'\n", ":1: nesterov must be true or false"},
        BadRecipe{"local-batch = 1\nglobal-batch = 2\n", ":1: local-batch 1 and"},
        BadRecipe{"data = 2020-01-01\n", ":1: data must be a text"}));

}  // namespace
}  // namespace paceline::cli

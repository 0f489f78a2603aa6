#include "cli/options/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/parsed.h"

namespace paceline::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Command kAll[] = {kTrain, kSweep, kScale, kConverge, kStudy, kReport, kDoctor, kData};

// --- the table
// -------------------------------------------------------------------------------------------------

TEST(Arguments, OfAnOptionGivenTwiceTheLastCountsAndThatIsSaid) {
  const auto twice = settings(kTrain, {"--lr", "0.1", "--steps", "3", "--lr=0.2", "--steps", "3"});
  EXPECT_EQ(twice.train.lr, 0.2);
  EXPECT_THAT(twice.notes, testing::Contains("--lr is given as 0.1 and as 0.2; the last one counts"));
  EXPECT_THAT(twice.notes, testing::Not(testing::Contains(testing::HasSubstr("--steps"))));
}

TEST(Arguments, EveryRowReadsBackItsOwnDefault) {
  for (const auto& option : options()) {
    for (const Command command : kAll) {
      if (!(option.commands & command)) continue;
      Settings before = defaults(command);
      const auto text = option.get(before);
      if (text.empty()) continue;
      Settings after = defaults(command);
      option.set(after, text);
      EXPECT_EQ(option.get(after), text) << option.name() << " of " << command_name(command);
    }
  }
}

TEST(Arguments, EveryRowIsReachableFromItsCommandLine) {
  for (const auto& option : options()) {
    for (const Command command : kAll) {
      if (!(option.commands & command)) continue;
      EXPECT_EQ(find_option(option.name(), command), &option)
          << "two rows of one name for " << command_name(command);
      EXPECT_THAT(help_text(command), HasSubstr(std::string(option.name())));
    }
  }
}

TEST(Arguments, TheShortHelpIsAPage) {
  for (const Command command : kAll) {
    const std::string help = help_text(command, true);
    EXPECT_LE(std::ranges::count(help, '\n'), 25) << help;
  }
  EXPECT_THAT(parse(kTrain, {"-h"}).help, AllOf(HasSubstr("--model"), HasSubstr("paceline train --help")));
  EXPECT_EQ(parse(kTrain, {"--help"}).help, help_text(kTrain));
}

// --- the command line
// ------------------------------------------------------------------------------------------

TEST(Arguments, EveryTrainingOptionArrives) {
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

TEST(Arguments, ScalingOptionsArrive) {
  const auto s = settings(kScale, {"--workers", "1,2", "--batches", "32,64", "--mode", "both", "--repeats",
                                   "5", "--window-steps", "20", "--warmup-steps", "3"});
  EXPECT_THAT(s.study.scale.workers, ElementsAre(1, 2));
  EXPECT_THAT(s.study.scale.batches, ElementsAre(32, 64));
  EXPECT_EQ(s.study.scale.mode, "both");
  EXPECT_EQ(s.study.scale.repeats, 5);
  EXPECT_EQ(s.train.window_steps, 20);
  EXPECT_EQ(s.train.warmup_steps, 3);
}

TEST(Arguments, CellsAreTimedOverWholeEpochsUnlessToldSteps) {
  EXPECT_EQ(settings(kScale, {}).train.window_steps, train::Options::kWholeEpoch);
  EXPECT_EQ(settings(kTrain, {}).train.window_steps, 0);
}

TEST(Arguments, SweepTakesAutomaticBatchesAndScaleDoesNot) {
  EXPECT_TRUE(settings(kSweep, {"--batches", "auto"}).study.sweep.automatic_batches);
  EXPECT_THAT(complaint(kScale, {"--batches", "auto"}), HasSubstr("--batches auto is for sweep"));
}

TEST(Arguments, ConvergeComparesRemediesOrNumbersOfWorkers) {
  EXPECT_TRUE(settings(kConverge, {"--workers", "4"}).study.converge.workers.empty());
  EXPECT_EQ(settings(kConverge, {"--workers", "4"}).train.workers, 4);
  EXPECT_THAT(settings(kConverge, {"--compare", "workers", "--workers", "1,3"}).study.converge.workers,
              testing::ElementsAre(1, 3));
  EXPECT_TRUE(settings(kConverge, {"--compare", "shuffle", "--large-batch", "8"}).study.converge.shuffle);
  EXPECT_THAT(settings(kStudy, {"--compare", "workers"}).study.converge.workers,
              testing::ElementsAre(1, 2, 4));
}

TEST(Arguments, ConvergeComparesBatchesUpToATarget) {
  const auto s = settings(kConverge, {"--compare", "batches", "--batches", "32,64,128,256", "--rates", "3",
                                      "--seeds", "2", "--target", "accuracy=0.97", "--evaluate-steps", "20"});
  EXPECT_THAT(s.study.converge.batches, ElementsAre(32, 64, 128, 256));
  EXPECT_EQ(s.study.converge.rates, 3);
  EXPECT_EQ(s.study.converge.repeats, 2);
  EXPECT_EQ(s.train.target.value().value, 0.97);
  EXPECT_EQ(s.train.evaluate_steps, 20);
  EXPECT_EQ(settings(kTrain, {"--target", "loss=0.1"}).train.target.value().is_loss, true);
  EXPECT_THAT(complaint(kConverge, {"--compare", "batches", "--batches", "32,64"}),
              HasSubstr("--compare batches counts the steps to a target; give one"));
  EXPECT_THAT(complaint(kConverge, {"--compare", "batches", "--target", "loss=1"}),
              HasSubstr("--compare batches needs a list of global batches"));
  EXPECT_THAT(complaint(kConverge, {"--batches", "32,64"}), HasSubstr("--batches is for --compare batches"));
  EXPECT_THAT(complaint(kConverge, {"--rates", "3"}), HasSubstr("--rates is for --compare batches"));
  EXPECT_THAT(complaint(kStudy, {"--compare", "batches"}), HasSubstr("is no part of a study"));
  EXPECT_THAT(complaint(kTrain, {"--target", "0.97"}), HasSubstr("--target must be accuracy=X"));
}

TEST(Arguments, DefaultsTakenAreSaid) {
  const auto s = settings(kTrain, {});
  EXPECT_EQ(s.train.local_batch, 128);
  EXPECT_THAT(s.notes, Contains(HasSubstr("local batch 128")));
  EXPECT_THAT(s.notes, Contains(HasSubstr("1 epoch")));
}

TEST(Arguments, OptionsThatNothingReadsAreSaid) {
  const auto notes = [](std::vector<std::string> words) {
    words.insert(words.end(), {"--local-batch", "8", "--epochs", "2"});
    return settings(kTrain, words).notes;
  };
  EXPECT_THAT(notes({"--trust", "0.01"}), ElementsAre("--trust changes nothing without --optimizer lars"));
  EXPECT_THAT(notes({"--trust", "0.01", "--optimizer", "lars"}), IsEmpty());
  EXPECT_THAT(notes({"--momentum", "0.5", "--optimizer", "adam"}),
              ElementsAre(HasSubstr("--momentum changes nothing")));
  EXPECT_THAT(notes({"--momentum", "0.5", "--schedule", "step", "--step-epochs", "1"}), IsEmpty());
  EXPECT_THAT(notes({"--step-epochs", "1"}), ElementsAre(HasSubstr("--schedule step")));
  EXPECT_THAT(notes({"--lookahead-keep", "0.3"}), ElementsAre(HasSubstr("without --lookahead")));
  EXPECT_THAT(notes({"--warmup", "5"}), ElementsAre(HasSubstr("--warmup 5 is longer than the 2 epochs")));
  EXPECT_THAT(notes({"--warmup", "2"}), IsEmpty());
  EXPECT_THAT(notes({"--flip", "random", "--no-augment"}), ElementsAre(HasSubstr("--flip changes nothing")));
  EXPECT_THAT(notes({"--flip", "random"}), IsEmpty());
}

TEST(Arguments, AnOptimizerBringsItsUsualRateUnlessOneIsGiven) {
  EXPECT_DOUBLE_EQ(settings(kTrain, {"--optimizer", "adadelta"}).train.lr, 1);
  EXPECT_DOUBLE_EQ(settings(kTrain, {"--lr", "0.5", "--optimizer", "adadelta"}).train.lr, 0.5);
  EXPECT_DOUBLE_EQ(settings(kTrain, {"--optimizer", "adam"}).train.rule.momentum, 0);
}

TEST(Arguments, ASwitchTakesAValueAtItsWord) {
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
        Bad{kTrain, {"--on-nan", "roll"}, "--on-nan"}, Bad{kVerify, {}, "verify takes the files to check"},
        Bad{kTrain, {"--batch", "32"}, "--batch is not an option, because with several workers"},
        Bad{kTrain, {"--batch=32"}, "--local-batch b is what one worker takes"},
        Bad{kTrain, {"--batch-size", "32"}, "--batch-size is not an option, because with several workers"},
        Bad{kSweep, {"--batch-size", "32"}, "--batches LIST says which sizes are compared"},
        Bad{kTrain, {"--gpus", "2"}, "--gpus is not an option: --workers N says how many"},
        Bad{kTrain, {"--num-workers", "2"}, "--num-workers is not an option: the threads that prepare"},
        Bad{kTrain, {"--num_workers=2"}, "--loader-threads N of each worker, 0: none"},
        Bad{kScale, {"--dry-run"}, "--dry-run is not an option: --plan shows settings"},
        Bad{kTrain, {"--learning-rate", "1"}, "--learning-rate is not an option: --lr X"},
        Bad{kTrain, {"--zero-init-residual"}, "is not an option: --zero-gamma"},
        Bad{kTrain, {"--local-rank", "1"}, "come from the launcher"},
        Bad{kTrain, {"--loader-threads", "-1"}, "--loader-threads must be a whole number from 0"},
        Bad{kTrain, {"--rotate", "181"}, "--rotate must be a number of at least 0 and at most 180"},
        Bad{kTrain, {"--warmup-start", "fast"}, "--warmup-start must be a number"},
        Bad{kConverge,
            {"--variants", "linaer"},
            "has 'linaer', which is not a remedy (did you mean linear?)"},
        Bad{kConverge, {"--variants", "linear+linear"}, "has 'linear' twice"},
        Bad{kConverge, {"--variants", "linear+epochs=3"}, "only options of the learning rule"},
        Bad{kConverge, {"--variants", "weight-dcay=3"}, "did you mean weight-decay?"},
        Bad{kConverge, {"--variants", "lr=no"}, "has 'lr=no', whose value must be a number above 0"},
        Bad{kConverge,
            {"--variants", "linear", "--compare", "workers", "--workers", "1,2"},
            "--variants names remedies of one large batch"},
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
        Bad{kTrain, {"--precision", "fp8"}, "--precision must be one of auto, fp32, bf16, fp16, got 'fp8'"},
        Bad{kTrain,
            {"--device", "gpu"},
            "--device must be one of cpu, reference, cuda, cuda:K, cuda-on-host, got 'gpu'"},
        Bad{kTrain, {"--bn", "ghost"}, "--bn must be one of local, sync, ghost:N"},
        Bad{kTrain,
            {"--bn", "ghost:0"},
            "--bn must have a whole number from 1 to 1048576 as its N, got 'ghost:0'"},
        Bad{kTrain,
            {"--bn", "ghost:N"},
            "--bn must have a whole number from 1 to 1048576 as its N, got 'ghost:N'"},
        Bad{kTrain, {"--steps", "2.5"}, "--steps must be a whole number of at least 1, got '2.5'"},
        Bad{kComm,
            {"--sizes", "1K:1.5M"},
            "--sizes must have a whole number from 1 to 1024 as its number, got '1.5M'"},
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
        Bad{kConverge,
            {"--compare", "shuffle", "--variants", "linear"},
            "chooses the orders that it compares"},
        Bad{kConverge, {"--compare", "shuffle", "--shuffle", "window:2"}, "leave out --shuffle"},
        Bad{kTrain, {"--shuffle", "window:0"}, "--shuffle"},
        Bad{kTrain, {"--shuffle", "local"}, "must be global or window:W, got 'local'"},
        Bad{kConverge,
            {"--compare", "sizes"},
            "--compare must be one of remedies, workers, shuffle, batches"},
        Bad{kSbatch, {"--time", "1:2:3:4"}, "--time must be HH:MM:SS, D-HH:MM:SS or minutes, got '1:2:3:4'"},
        Bad{kSbatch, {"--memory", "16GB"}, "--memory must be a number followed by K, M, G or T"},
        Bad{kSbatch, {"--constraint", "a b"}, "--constraint must be names of features"},
        Bad{kReport, {}, "report takes the records"},
        Bad{kReport, {"r.json", "--html"}, "--html needs a value"},
        Bad{kData, {"inf", "synthetic"}, "data takes what to do and a data set"},
        Bad{kDoctor, {"everything"}, "'everything' is not expected"}));

TEST(Arguments, DataIsToldHowToBeOpened) {
  const auto s =
      settings(kTrain, {"--data", "folder:x,size=32", "--validation-split", "0.2", "--bad-images", "skip"});
  EXPECT_EQ(s.train.validation_split, 0.2);
  EXPECT_TRUE(s.train.skip_bad_images);
  EXPECT_FALSE(settings(kTrain, {}).train.skip_bad_images);
  EXPECT_THAT(complaint(kTrain, {"--bad-images", "ignore"}), HasSubstr("must be one of error, skip"));
  EXPECT_THAT(complaint(kTrain, {"--validation-split", "1"}), HasSubstr("--validation-split"));
}

}  // namespace
}  // namespace paceline::cli

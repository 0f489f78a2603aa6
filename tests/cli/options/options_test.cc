#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "cli/options/options.h"
#include "cli/options_of.h"
#include "cli/parsed.h"
#include "study/study.h"

namespace paceline::cli {
namespace {

using measure::Setting;

// That each has a reader at all is checked where it is compiled.
TEST(Options, EverySettingThatRecordsHoldIsAnOptionOfTrain) {
  for (std::size_t row = 0; row < Setting::count(); ++row) {
    const auto setting = Setting::at(row);
    if (!setting.is_recorded()) continue;
    EXPECT_NE(find_option(setting.key(), kTrain), nullptr) << setting.key();
  }
}

// A recipe is read by commands that train; what only others take, or what is about one start, is typed.
TEST(Options, OfRecipesAreThoseOfTrainings) {
  for (const char* name : {"meet-within", "meeting-secret", "interface", "plan", "calibrate", "only-cells",
                           "by", "html", "strict", "force", "port"})
    for (const auto& option : options()) {
      EXPECT_FALSE(option.name() == name && option.in_recipes()) << name;
    }
  for (const char* name : {"lr", "batches", "workers", "expect", "tables", "placement", "timeline"})
    EXPECT_TRUE(std::ranges::any_of(options(), [&](const auto& option) {
      return option.name() == name && option.in_recipes();
    })) << name;
}

TEST(Options, RivalsNameEachOther) {
  for (const auto& option : options()) {
    if (!option.rules.rival) continue;
    for (const auto& other : options()) {
      if (other.setting != *option.rules.rival) continue;
      EXPECT_EQ(other.rules.rival, option.setting) << option.name();
    }
  }
}

}  // namespace

namespace {

using testing::ElementsAre;

std::vector<study::PlannedCell> cells_of(const std::vector<std::string>& words) {
  const auto parsed = settings(kConverge, words);
  return study::converge_cells(parsed.train, parsed.study.converge);
}

TEST(Variants, AreChosenAndComposed) {
  const auto cells = cells_of({"--workers", "2", "--variants",
                               "linear+warmup, linear+warmup-from-base+zero-gamma+no-decay", "--lr", "0.2"});
  std::vector<std::string> names;
  for (const auto& cell : cells) names.push_back(cell.variant);
  EXPECT_THAT(names, ElementsAre("baseline", "large batch", "+ linear, warm-up",
                                 "+ linear, warm-up from base, zero gamma, no decay on norm and bias"));
  EXPECT_EQ(cells[2].options.schedule.warmup_start, 0);
  EXPECT_FALSE(cells[2].options.zero_gamma);
  const auto& last = cells[3].options;
  EXPECT_EQ(last.scale_lr, train::LrScaling::linear);
  EXPECT_GT(last.schedule.warmup_epochs, 0);
  EXPECT_EQ(last.schedule.warmup_start, 0.2);
  EXPECT_TRUE(last.zero_gamma);
  EXPECT_FALSE(last.rule.decay_norm_and_bias);
  EXPECT_EQ(cells[3].id, "converge-linear-warm-up-from-base-zero-gamma-no-decay-on-norm-and-bias-r0");
}

TEST(Variants, MayChangeAnyOptionOfTheRule) {
  const auto cells = cells_of({"--variants", "linear+weight-decay=1e-4+nesterov=true,optimizer=adamw,plain"});
  ASSERT_EQ(cells.size(), 4u);
  EXPECT_EQ(cells[2].variant, "+ linear, weight-decay 1e-4, nesterov true");
  EXPECT_EQ(cells[2].options.rule.weight_decay, 1e-4);
  EXPECT_TRUE(cells[2].options.rule.nesterov);
  EXPECT_EQ(cells[2].options.scale_lr, train::LrScaling::linear);
  EXPECT_EQ(cells[2].options.global_batch, 2048);
  EXPECT_EQ(cells[3].options.rule.kind, engine::UpdateKind::adamw);
  EXPECT_EQ(cells[1].options.rule.weight_decay, 5e-4);  // the others keep theirs
}

TEST(Variants, WithLarsScaleTheFirstRateOfTheWarmUpToo) {
  const auto cells =
      cells_of({"--variants", "sqrt+warmup-from-base+lars+momentum-correction", "--lr", "0.1"});
  EXPECT_DOUBLE_EQ(cells[2].options.lr, 2);
  EXPECT_DOUBLE_EQ(cells[2].options.schedule.warmup_start, 2);
  EXPECT_TRUE(cells[2].options.momentum_correction);
}

TEST(Variants, RefuseARemedyThatDoesNothing) {
  try {
    (void)cells_of({"--variants", "linear+momentum-correction"});
    FAIL() << "accepted";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("momentum correction changes nothing without LARS"));
  }
}

TEST(Options, TakeTheBaseRateAsTheBeginOfAWarmUp) {
  EXPECT_EQ(settings(kTrain, {"--lr", "0.3", "--warmup", "2", "--warmup-start", "base"})
                .train.schedule.warmup_start,
            0.3);
  EXPECT_EQ(settings(kTrain, {"--optimizer", "adam", "--warmup", "2", "--warmup-start", "base"})
                .train.schedule.warmup_start,
            1e-3);
  EXPECT_EQ(settings(kTrain, {"--warmup", "2", "--warmup-start", "0.01"}).train.schedule.warmup_start, 0.01);
  EXPECT_THAT(settings(kTrain, {"--warmup-start", "0.01"}).notes,
              testing::Contains(testing::HasSubstr("--warmup-start changes nothing without --warmup")));
}

TEST(OtherWords, SpeakWithTheRecipesPrefixToo) {
  EXPECT_THAT(hint_for_other_word("num_workers", "").value(), testing::HasSubstr("are loader-threads N"));
  EXPECT_FALSE(hint_for_other_word("num", "--"));
}

TEST(OtherWords, FitTheirCommand) {
  struct Hint {
    Command command;
    const char* word;
    const char* has;
  };
  for (const auto& [command, word, has] :
       {Hint{kLaunch, "np", "--processes N, or -n N"}, Hint{kLaunch, "nproc_per_node", "--processes N"},
        Hint{kLaunch, "workers", "--processes N"}, Hint{kLaunch, "hostfile", "--hosts a:2,b:2"},
        Hint{kLaunch, "max-restarts", "--restarts K"},
        Hint{kLaunch, "rdzv-endpoint", "launch numbers its processes"},
        Hint{kLaunch, "learning-rate", "behind the command"},
        Hint{kSbatch, "ntasks-per-node", "--workers-per-node N"}, Hint{kSbatch, "cpus-per-task", "--cores N"},
        Hint{kSbatch, "gres", "--gpus-per-node N"}, Hint{kSbatch, "mem", "--memory SIZE"},
        Hint{kSbatch, "job-name", "--name NAME"}, Hint{kSbatch, "exclusive", "--slurm '--OPTION=VALUE'"},
        Hint{kTrain, "np", "--workers N"}}) {
    EXPECT_THAT(why_unknown(word, command), testing::HasSubstr(has)) << word;
  }
  for (const Command command : {kLaunch, kReport, kDoctor})  // --workers is no option of these
    EXPECT_THAT(why_unknown("num-devices", command), testing::Not(testing::HasSubstr("option: --workers")));
}

// A hint that named an option which is none would send its reader on to the next error.
TEST(OtherWords, NameOptionsThatThereAre) {
  for (const char* word : {"num-workers",
                           "gpus",
                           "learning-rate",
                           "wd",
                           "warmup-epochs",
                           "scheduler",
                           "arch",
                           "dataset",
                           "amp",
                           "sync-bn",
                           "zero-init-residual",
                           "max-epochs",
                           "max-steps",
                           "val-split",
                           "val-every",
                           "checkpoint",
                           "save-dir",
                           "backend",
                           "accumulate-grad-batches",
                           "cuda",
                           "bucket-cap-mb",
                           "compression",
                           "profiler",
                           "print-freq"}) {
    const auto hint = hint_for_other_word(word, "--");
    ASSERT_TRUE(hint) << word;
    for (const auto& option : options_named_in(*hint))
      EXPECT_NE(find_option(option, kTrain), nullptr) << word << ": --" << option;
  }
}

}  // namespace
}  // namespace paceline::cli

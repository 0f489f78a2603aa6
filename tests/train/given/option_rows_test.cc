#include "train/given/option_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/update_rule.h"

namespace paceline::train {
namespace {

using measure::Setting;
using testing::HasSubstr;

std::vector<OptionRow<Options>> all_rows() {
  std::vector<OptionRow<Options>> rows;
  for (const auto part : {training_rows(), rule_rows(), link_rows(), window_rows()})
    rows.insert(rows.end(), part.begin(), part.end());
  return rows;
}

const OptionRow<Options>& row_of(const std::vector<OptionRow<Options>>& rows, Setting setting) {
  return *std::ranges::find(rows, setting, &OptionRow<Options>::setting);
}

TEST(OptionRows, AreOfEverySettingThatRecordsHold) {
  std::set<std::string_view> keys;
  for (const auto& row : all_rows()) keys.insert(row.setting.key());
  for (std::size_t at = 0; at < Setting::count(); ++at)
    if (Setting::at(at).is_recorded()) {
      EXPECT_TRUE(keys.contains(Setting::at(at).key())) << Setting::at(at).key();
    }
}

TEST(OptionRows, ReadTheTextThatRecordsHold) {
  Options usual;
  usual.local_batch = 32;
  usual.test_set = TestSet::last;
  for (const auto& row : all_rows()) {
    const auto text = row.field.text(usual), shown = row.field.shown(usual);
    if (text.empty() || shown.empty()) continue;  // 0: not set
    Options read = usual;
    row.field.set(read, text == "auto" ? shown : text);
    EXPECT_EQ(row.field.text(read), text) << row.setting.key();
    row.field.set(read, shown);
    EXPECT_EQ(row.field.shown(read), shown) << row.setting.key();
  }
}

// As shown and as recorded: one member of each kind.
TEST(OptionRows, HaveTextsOfEachKind) {
  struct Case {
    Setting setting;
    const char *given, *recorded, *shown;
  };
  const auto rows = all_rows();
  for (const auto& [setting, given, recorded, shown] :
       {Case{"model", "mnist-cnn", "mnist-cnn", "mnist-cnn"},
        Case{"seed", "7", "7", "7"},
        Case{"lr", "5e-4", "0.0005", "0.0005"},
        Case{"augment", "no", "false", "false"},
        Case{"crop-padding", "0", "0", "0"},
        Case{"crop-fill", "reflect", "reflect", "reflect"},
        Case{"crop-fill", "black", "", "black"},
        Case{"flip", "none", "none", "none"},
        Case{"test-time-augmentation", "flip-shift", "flip-shift", "flip-shift"},
        Case{"test-time-augmentation", "none", "", "none"},
        Case{"bn", "ghost:16", "ghost:16", "ghost:16"},
        Case{"bad-images", "skip", "skip", "skip"},
        Case{"bad-images", "error", "", "error"},
        Case{"class-weights", "balanced", "balanced", "balanced"},
        Case{"sampler", "balanced", "balanced", "balanced"},
        Case{"sampler", "uniform", "", "uniform"},
        Case{"shuffle", "window:8", "window:8", "window:8"},
        Case{"shuffle", "global", "", "global"},
        Case{"optimizer", "lars", "lars", "lars"},
        Case{"parallel", "data-parallel", "data-parallel", "data-parallel"},
        Case{"placement", "spread", "spread", "spread"},
        Case{"emulate-same-order", "true", "yes", "true"},
        Case{"bucket-mb", "2.5", "2.5", "2.5"},
        Case{"precision", "bf16", "bf16", "bf16"},
        Case{"device", "cuda:3", "cuda:3", "cuda:3"}}) {
    Options options;
    const auto& row = row_of(rows, setting);
    row.field.set(options, given);
    EXPECT_EQ(row.field.text(options), recorded) << setting.key();
    EXPECT_EQ(row.field.shown(options), shown) << setting.key();
  }
  Options options;
  EXPECT_EQ(row_of(rows, "steps").field.text(options), "0");
  EXPECT_EQ(row_of(rows, "steps").field.shown(options), "") << "0 is below what --steps takes: it is not set";
  EXPECT_EQ(row_of(rows, "early-stopping").field.shown(options), "0") << "--early-stopping takes 0";
  options.window_steps = Options::kWholeEpoch;
  EXPECT_EQ(row_of(rows, "window-steps").field.text(options), "-1");
  EXPECT_EQ(row_of(rows, "window-steps").field.shown(options), "");
}

TEST(OptionRows, RefuseWhatIsOutsideOfTheirLimits) {
  struct Case {
    Setting setting;
    const char *given, *says;
  };
  const auto rows = all_rows();
  for (const auto& [setting, given, says] :
       {Case{"workers", "0", "from 1 to 4096"}, Case{"local-batch", "1.5", "from 1 to 2147483648"},
        Case{"steps", "0", "of at least 1"}, Case{"seed", "-1", "of at least 0"}, Case{"lr", "0", "above 0"},
        Case{"momentum", "1", "at most 0.9999"}, Case{"pin", "maybe", "true or false"},
        Case{"precision", "fp8", "one of auto, fp32, bf16, fp16"},
        Case{"crop-fill", "white", "one of black, reflect"}, Case{"bad-images", "skp", "did you mean 'skip'"},
        Case{"sampler", "weighted", "one of uniform, balanced"},
        Case{"bucket", "4", "a size of your own is --bucket-mb"}, Case{"optimizer", "adm", "did you mean"},
        Case{"device", "gpu", "GPUs are called cuda"}}) {
    Options options;
    try {
      row_of(rows, setting).field.set(options, given);
      ADD_FAILURE() << setting.key() << " took " << given;
    } catch (const base::Error& error) {
      EXPECT_EQ(error.kind(), base::ErrorKind::usage);
      EXPECT_THAT(error.what(), HasSubstr(says)) << setting.key();
    }
  }
}

TEST(ReadIf, SaysWithWhichChoiceItHolds) {
  struct Case {
    Setting setting;
    const char* why_not;
    Setting choice;
    const char *unread, *read;
  };
  const auto rows = all_rows();
  for (const auto& [setting, why_not, choice, unread, read] :
       {Case{"beta1", "without --optimizer adam, adamw or lamb", "optimizer", "sgd", "adamw"},
        Case{"epsilon", "without --optimizer adam, adamw, rmsprop, adadelta or lamb", "optimizer", "lars",
             "rmsprop"},
        Case{"trust", "without --optimizer lars", "optimizer", "adam", "lars"},
        Case{"final-factor", "without --schedule cosine, one-cycle or polynomial", "schedule", "step",
             "one-cycle"},
        Case{"lookahead-keep", "without --lookahead", "lookahead", "0", "5"},
        Case{"warmup-start", "without --warmup", "warmup", "0", "0.5"},
        Case{"lr-batch", "without --scale-lr linear or sqrt", "scale-lr", "none", "sqrt"},
        Case{"rotate", "with --no-augment", "augment", "false", "true"}}) {
    const auto& rule = row_of(rows, setting).rules.read_if;
    EXPECT_EQ(rule.why_not(), why_not);
    Options options;
    row_of(rows, choice).field.set(options, unread);
    EXPECT_FALSE(rule.holds(options)) << setting.key();
    row_of(rows, choice).field.set(options, read);
    EXPECT_TRUE(rule.holds(options)) << setting.key();
  }
  EXPECT_TRUE(row_of(rows, "lr").rules.read_if.holds({}));
}

// A row of words that no option has would never be read.
TEST(ReadIf, NamesValuesThatItsOptionTakes) {
  const auto rows = all_rows();
  for (const auto& row : rows)
    for (const auto& other : rows) {
      const auto why = row.rules.read_if.holds({}) ? "" : row.rules.read_if.why_not();
      const auto name = "without --" + std::string(other.setting.key()) + " ";
      if (!why.starts_with(name)) continue;
      auto words = why.substr(name.size());
      if (const auto at = words.find(" or "); at != words.npos) words.replace(at, 4, ", ");
      for (const auto& word : base::parts(words)) {
        Options options;
        EXPECT_NO_THROW(other.field.set(options, word)) << row.setting.key();
        EXPECT_TRUE(row.rules.read_if.holds(options)) << row.setting.key() << " with " << word;
      }
    }
}

// Options that were recorded before anything said when they are read stay in records, whose texts are
// compared.
TEST(RecordedSettings, KeepWhatOlderRecordsHold) {
  Options options;
  options.augment = false;
  options.crop_padding = 4;
  options.warp.rotate = 10;
  options.rule.kind = engine::UpdateKind::adam;
  options.rule.momentum = 0.8;
  EXPECT_EQ(settings(options).at("crop-padding"), "4");
  EXPECT_EQ(settings(options).at("rotate"), "10");
  EXPECT_EQ(settings(options).at("momentum"), "0.8");
  EXPECT_EQ(settings(options).at("lr-batch"), "0");
  EXPECT_FALSE(settings(options).contains("kernels-from"));
}

// Six digits made cells of two learning rates the same cell.
TEST(RecordedSettings, TellNumbersApartThatDifferLate) {
  Options a, b;
  a.lr = 0.1;
  b.lr = 0.1000001;
  EXPECT_EQ(settings(a).at("lr"), "0.1");
  EXPECT_EQ(settings(b).at("lr"), "0.1000001");
}

// Which numbers are read depends on the optimizer and the schedule: a number that nothing reads tells no runs
// apart.
TEST(RecordedSettings, LackWhatNothingReads) {
  Options options;
  EXPECT_FALSE(settings(options).contains("beta1"));
  EXPECT_FALSE(settings(options).contains("step-epochs"));
  EXPECT_FALSE(settings(options).contains("lookahead-keep"));
  options.rule.kind = engine::UpdateKind::adamw;
  options.schedule.kind = ScheduleKind::step;
  options.lookahead.steps = 5;
  EXPECT_EQ(settings(options).at("beta1"), "0.9");
  EXPECT_EQ(settings(options).at("step-epochs"), "30");
  EXPECT_EQ(settings(options).at("lookahead-keep"), "0.5");
}

// Records of before these options are those of their defaults.
TEST(RecordedSettings, LackTheUsualWayToJoinWorkers) {
  Options options;
  EXPECT_FALSE(settings(options).contains("placement"));
  EXPECT_FALSE(settings(options).contains("parallel"));
  options.placement = Placement::spread;
  options.data_parallel = true;
  EXPECT_EQ(settings(options).at("placement"), "spread");
  EXPECT_EQ(settings(options).at("parallel"), "data-parallel");
}

TEST(RecordedSettings, DifferWhereOneSideLacksOne) {
  const auto changes =
      differences({{"lr", "0.1"}, {"seed", "0"}}, {{"lr", "0.2"}, {"seed", "0"}, {"flip", "none"}});
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].setting, "flip");
  EXPECT_EQ(changes[0].then, std::nullopt);
  EXPECT_EQ(changes[0].now, "none");
  EXPECT_EQ(changes[1].setting, "lr");
  EXPECT_EQ(changes[1].then, "0.1");
}

}  // namespace
}  // namespace paceline::train

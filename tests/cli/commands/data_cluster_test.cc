/// `paceline data pack --shards` and `data stage` as a user types them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "base/file.h"
#include "cli/commands/small_model.h"
#include "cli/program.h"
#include "measure/record.h"

namespace paceline::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using Words = std::vector<std::string>;

/// A PPM of one colour with a stripe, which differ with `seed`.
std::string coloured(int seed) {
  std::string file = "P6\n12 12\n255\n";
  for (int i = 0; i < 144; ++i)
    for (int c = 0; c < 3; ++c)
      file += static_cast<char>((seed * (37 + 50 * c) + (i % 12 == seed % 12 ? 90 : 0)) % 256);
  return file;
}

class DataCluster : public testing::Test {
 protected:
  DataCluster() {
    (void)folder_.write("m.toml", kSmallModel);
    for (const char* part : {"train", "val", "test"})
      for (const char* name : {"/a/", "/b/", "/c/"})
        for (int i = 0; i < 8; ++i) {
          const std::string place = std::string("images/") + part + name;
          std::filesystem::create_directories(folder_.path() / place);
          (void)folder_.write(
              place + std::to_string(10 + i) + ".ppm",
              coloured(3 * i + (name[1] - 'a') + 100 * (part[1] == 'e') + 50 * (part[0] == 'v')));
        }
  }
  Outcome run(const Words& words, RunConditions conditions = {}) const {
    conditions.directory = folder_.path();
    return run_program(words, conditions);
  }
  /// The losses and accuracies of each epoch.
  std::vector<double> learned(const std::string& spec, const std::string& out, const Words& more = {}) const {
    Words words{"train",    "--model", "m.toml",    "--data", spec,       "--local-batch", "8",
                "--epochs", "2",       "--threads", "1",      "--no-pin", "--out",         out};
    words.insert(words.end(), more.begin(), more.end());
    const auto outcome = run(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::vector<double> figures;
    for (const auto& epoch : measure::read_record(folder_.path() / out / "record.json").epochs)
      for (const auto& one : {std::optional(epoch.train_loss), epoch.validation_loss, epoch.test_loss})
        figures.push_back(one.value_or(-1));
    EXPECT_EQ(figures.size(), 6u);
    return figures;
  }
  /// What stands behind `key` in the last line of `text` that begins with it, without quotes of a shell.
  static std::string behind(const std::string& text, const std::string& key) {
    const auto at = text.rfind("\n" + key) + 1 + key.size();
    auto rest = text.substr(at, text.find('\n', at) - at);
    std::erase(rest, '\'');
    return rest;
  }
  Folder folder_;
};

TEST_F(DataCluster, OrderedShardsGiveTheSameTraining) {
  const std::string options = ",size=12,jitter=0.2";
  const auto packed = run({"data", "pack", "folder:images" + options, "s", "--shards", "5", "--keep-order"});
  ASSERT_EQ(packed.code, 0) << packed.err;
  EXPECT_THAT(packed.out, HasSubstr("72 samples in 15 shards"));
  const auto spec = behind(packed.out, "--data ");
  EXPECT_EQ(
      spec,
      "shards:s/train-{0000..0004}.tar,validation=validation-{0000..0004}.tar,test=test-{0000..0004}.tar,"
      "classes=classes.txt,size=12,jitter=0.2");
  const auto folder = learned("folder:images" + options, "1");
  EXPECT_EQ(learned(spec, "2"), folder);
  const auto mixed = run({"data", "pack", "folder:images" + options, "m", "--shards", "5"});
  EXPECT_NE(learned(behind(mixed.out, "--data "), "3"), folder) << "its samples have another order";
  const auto staged = run({"data", "stage", spec, "--to", "local"});
  EXPECT_EQ(staged.code, 0) << staged.err;
  EXPECT_EQ(std::count(staged.out.begin(), staged.out.end(), '\n'), 1) << staged.out;
  EXPECT_THAT(staged.err, AllOf(HasSubstr("copied"), HasSubstr("SHA-256")));
  EXPECT_EQ(learned(staged.out.substr(0, staged.out.size() - 1), "4"), folder);
  EXPECT_THAT(run({"data", "stage", spec, "--to", "local"}).err, HasSubstr("nothing was copied"));
}

TEST_F(DataCluster, AFullDiskLeavesNoShards) {
  const auto full = run({"data", "pack", "folder:images", "s", "--shards", "2"}, {.largest_file = 20000});
  EXPECT_EQ(full.code, 3);
  EXPECT_THAT(full.err,
              AllOf(HasSubstr("s.paceline-partial/"), HasSubstr("000"), HasSubstr("is the disk full")))
      << "several threads write shards, and any of them may be the first that finds no room";
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "s"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "s.paceline-partial"));
  const auto copy = run({"data", "stage", "folder:images", "--to", "local"}, {.largest_file = 300});
  EXPECT_EQ(copy.code, 3);
  EXPECT_THAT(copy.err, HasSubstr("cannot be written: File too large"));
}

TEST_F(DataCluster, RefusesOptionsThatNothingReads) {
  const auto says = [&](const Words& words) {
    const auto outcome = run(words);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(says({"data", "info", "folder:images", "--shards", "2"}),
              HasSubstr("--shards is for data pack"));
  EXPECT_THAT(says({"data", "pack", "folder:images", "s.tar", "--max-side", "30"}),
              HasSubstr("--shards alone"));
  EXPECT_THAT(says({"data", "pack", "folder:images", "s", "--shards", "2", "--quality", "9"}),
              HasSubstr("--max-side alone"));
  EXPECT_THAT(says({"data", "pack", "folder:images", "s", "--shards", "2", "--decoded"}),
              HasSubstr("leave one out"));
  EXPECT_THAT(says({"data", "stage", "folder:images"}), HasSubstr("--to DIR"));
}

TEST_F(DataCluster, AKilledPackLeavesNoShards) {
  for (int i = 0; i < 3000; ++i)
    std::filesystem::create_hard_link(folder_.path() / "images/train/a/10.ppm",
                                      folder_.path() / ("images/train/a/x" + std::to_string(i) + ".ppm"));
  Program program({"data", "pack", "folder:images", "s", "--shards", "900"}, {.directory = folder_.path()});
  while (!std::filesystem::exists(folder_.path() / "s.paceline-partial/train-0001.tar") &&
         !std::filesystem::exists(folder_.path() / "s"))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  program.signal(SIGKILL);
  (void)program.finish();
  ASSERT_FALSE(std::filesystem::exists(folder_.path() / "s")) << "it was faster";
  EXPECT_EQ(run({"data", "info", "shards:s/train-*.tar"}).code, 3);
  const auto again = run({"data", "pack", "folder:images", "s", "--shards", "3"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "s.paceline-partial"));
}

}  // namespace
}  // namespace paceline::cli

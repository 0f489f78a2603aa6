/// Trainings on shards: the same bits for any number of workers, and a shard that is away or cut for a while.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/shards/shard_files.h"
#include "data/shards/shards.h"
#include "measure/record.h"
#include "measure/record_file.h"
#include "program.h"

namespace paceline::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Shards : public testing::Test {
 protected:
  Shards() {
    (void)folder_.write("tiny.toml",
                        "[[layer]]\nop = \"conv2d\"\nname = \"c\"\nchannels = 4\nkernel = 3\nstride = 4\n"
                        "[[layer]]\nop = \"global_average_pool\"\n"
                        "[[layer]]\nop = \"dense\"\nname = \"d\"\nfeatures = \"classes\"\n");
    data::write_shards(folder_.path(), {5}, 3, "val");
  }
  [[nodiscard]] static std::vector<std::string> training(const std::vector<std::string>& more) {
    std::vector<std::string> words{
        "train", "--model", "tiny.toml", "--data", "shards:train-*.tar,test=val-0.tar,size=8",
        "--lr",  "0.05",    "--threads", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  [[nodiscard]] Outcome run(const std::vector<std::string>& words) const {
    return run_program(words, {.directory = folder_.path()});
  }
  [[nodiscard]] std::string last_checkpoint(const std::string& out) const {
    fs::path last;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder_.path() / out, none))
      if (entry.path().filename().string().starts_with("checkpoint-") && entry.path() > last)
        last = entry.path();
    EXPECT_FALSE(last.empty()) << out;
    return base::read_file(last);
  }
  /// Starts or continues a training, lets `away` come in an epoch, and `back` once the run has ended, which
  /// says `says`.
  void expect_an_end(const std::vector<std::string>& words, const std::function<void()>& away,
                     const std::function<void()>& back, const std::string& says) const {
    Program program(words, {.directory = folder_.path()});
    ASSERT_TRUE(program.wait_for("epoch "));
    away();
    const auto outcome = program.finish();
    EXPECT_EQ(outcome.code, 3) << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr(says));
    EXPECT_THAT(outcome.err, HasSubstr("put it back, and continue from the last checkpoint"));
    back();
  }

  const Folder folder_;
};

TEST_F(Shards, GiveTheSameBitsToAnyWorkers) {
  data::write_shards(folder_.path(), {1, 7, 1000});
  for (const auto& [batch, numbers] : {std::pair{"16", std::vector{1, 2, 4}}, {"12", std::vector{1, 3}}})
    for (const char* shuffle : {"global", "window:2"}) {
      if (batch == std::string("12") && shuffle == std::string("global")) continue;
      std::string first;
      for (const int workers : numbers) {
        const auto out = fmt::format("{}-{}-{}", batch, shuffle, workers);
        const auto outcome =
            run(training({"--global-batch", batch, "--shard", "4", "--workers", std::to_string(workers),
                          "--steps", "40", "--shuffle", shuffle, "--out", out}));
        ASSERT_EQ(outcome.code, 0) << outcome.err;
        const auto weights = last_checkpoint(out);
        if (first.empty()) first = weights;
        EXPECT_TRUE(weights == first) << out;
      }
      const auto record =
          measure::read_record(folder_.path() / fmt::format("{}-{}-1/record.json", batch, shuffle));
      EXPECT_EQ(record.data.shards, 3);
      EXPECT_EQ(record.settings.contains("shuffle"), shuffle != std::string("global"));
    }
}

// More of them than stay open, so that one that is away is asked for within an epoch.
TEST_F(Shards, GoOnAfterBrokenOnes) {
  data::write_shards(folder_.path(), std::vector<int>(140, 2));
  auto words = training({"--global-batch", "16", "--shard", "8", "--workers", "2", "--epochs", "100",
                         "--checkpoint-every", "3steps", "--resume", "auto", "--out", "whole"});
  ASSERT_EQ(run(words).code, 0);
  words.back() = "disturbed";
  const auto shard = folder_.path() / "train-77.tar", elsewhere = folder_.path() / "away";
  expect_an_end(
      words, [&] { fs::rename(shard, elsewhere); }, [&] { fs::rename(elsewhere, shard); },
      "train-77.tar: the shard cannot be read: No such file");
  const auto bytes = base::read_file(shard);
  expect_an_end(
      words, [&] { fs::resize_file(shard, 700); }, [&] { base::write_file(shard, bytes); },
      "train-77.tar: the shard ");
  const auto again = run(words);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("resumed from"));
  EXPECT_TRUE(last_checkpoint("disturbed") == last_checkpoint("whole"));
}

TEST_F(Shards, WithoutATestSetDoNotTrain) {
  data::write_shards(folder_.path(), {20, 20});
  EXPECT_THAT(run({"data", "info", "shards:train-{0..1}.tar"}).out,
              HasSubstr("40 training and 0 test images"));
  std::vector<std::string> words{
      "train",          "--model", "tiny.toml", "--data", "shards:train-{0..1}.tar,size=8", "--steps", "2",
      "--global-batch", "8",       "--out",     "o"};
  EXPECT_THAT(run(words).err, HasSubstr("there is no test set; give the shards of one as test=PATTERN"));
  words.insert(words.end(), {"--validation-split", "0.2"});
  const auto outcome = run(words);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  words[4] = "synthetic,train=64,test=32";
  words.insert(words.end(), {"--shuffle", "window:2", "--out", "p"});
  EXPECT_THAT(run(words).err, HasSubstr("--shuffle window:2: 'synthetic,train=64,test=32' is not in shards"));
}

TEST_F(Shards, AreVerifiedByTheSumOfLists) {
  data::write_shards(folder_.path(), {3, 3});
  const auto opened =
      data::open_shard_index(data::shard_paths((folder_.path() / "train-*.tar").string()), "", 1);
  const auto name = opened.manifest.filename().string();
  EXPECT_THAT(run({"verify", name}).out, HasSubstr("a list of 6 samples in 2 shards, as its SHA-256 says"));
  auto bytes = base::read_file(opened.manifest);
  bytes.back() ^= 1;
  base::write_file(opened.manifest, bytes);
  const auto outcome = run({"verify", name});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.out, HasSubstr("damaged  " + name + ": its bytes do not match its SHA-256"));
}

TEST_F(Shards, AreComparedInTheirOrders) {
  data::write_shards(folder_.path(), std::vector<int>(9, 16));
  const auto converge = [&](const std::string& data) {
    return run({"converge", "--compare", "shuffle", "--model", "tiny.toml", "--data", data,
                "--baseline-batch", "16", "--epochs", "1", "--repeats", "2", "--threads", "1", "--out",
                "study"});
  };
  const auto outcome = converge("shards:train-*.tar,test=val-0.tar,size=8");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  ASSERT_EQ(run({"report", "study", "--markdown", "study.md"}).code, 0);
  const auto report = base::read_file(folder_.path() / "study.md");
  for (const char* variant : {"global", "window:1", "window:8"}) EXPECT_THAT(report, HasSubstr(variant));
  EXPECT_THAT(report, testing::Not(HasSubstr("window:64")));
  EXPECT_THAT(converge("synthetic,train=64,test=32").err, HasSubstr("--compare shuffle: 'synthetic"));
}

}  // namespace
}  // namespace paceline::cli

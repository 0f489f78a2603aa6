/// Bits do not depend on what a machine has measured: by default no cache is read, and what a run computed
/// with stands in its record and checkpoint, where another run finds it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/module.h"
#include "cli/program.h"
#include "comm/gloo/load.h"
#include "measure/record.h"

namespace paceline::cli {
namespace {

using testing::HasSubstr;
using Words = std::vector<std::string>;

class KernelsOfRuns : public testing::TestWithParam<const char*> {
 protected:
  static Words words_with(const Words& more) {
    Words words{"train",
                "--device",
                GetParam(),
                "--model",
                "resnet8-cifar",
                "--data",
                "synthetic,train=48,test=16",
                "--precision",
                "fp32",
                "--threads",
                "1",
                "--no-pin",
                "--local-batch",
                "8",
                "--lr",
                "0.02",
                "--evaluate-every",
                "0"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Outcome run(const Words& more, const std::string& cache = "cache") {
    return run_program(words_with(more), {.directory = folder_.path(), .cache = cache});
  }
  /// Runs well, and leaves these bytes as its newest checkpoint.
  std::string checkpoint_of(const Words& more, const std::string& out, const std::string& cache = "cache") {
    Words words = more;
    words.insert(words.end(), {"--out", out});
    const auto outcome = run(words, cache);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::filesystem::path newest;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path() / out))
      if (entry.path().extension() == ".safetensors" && entry.path() > newest && !entry.is_symlink())
        newest = entry.path();
    return base::read_file(newest);
  }
  measure::Record record(const std::string& out) {
    return measure::read_record(folder_.path() / out / "record.json");
  }
  /// The record of `out` with another algorithm for every convolution of 16 channels, forward.
  std::string with_other_kernels(const std::string& out) {
    auto changed = record(out);
    int count = 0;
    for (auto& [product, algorithm] : changed.kernels.value().algorithms) {
      if (product.starts_with("conv2d forward from 16x32x32 to 16x32x32, kernel 3"))
        algorithm = algorithm == "onednn" ? "winograd" : "onednn";
      else if (product.starts_with("forward, f32, 8x32x32x16 to 8x32x32x16, kernel 3"))
        algorithm = algorithm == "host-loops" ? "host-loops-descending" : "host-loops";
      else
        continue;
      ++count;
    }
    EXPECT_GT(count, 0);
    const auto path = folder_.path() / (out + "-changed.json");
    measure::write_record(path, changed);
    return path.string();
  }

  Folder folder_;
};

TEST_P(KernelsOfRuns, ByDefaultAreTheSameWithAnyCacheAndReadNone) {
  const std::string first = checkpoint_of({"--steps", "4"}, "first", "cache-1");
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "cache-1"));
  EXPECT_EQ(run({"--steps", "1", "--measured-kernels", "--out", "measures"}, "cache-2").code, 0);
  EXPECT_EQ(checkpoint_of({"--steps", "4"}, "second", "cache-2"), first)
      << "a cache is there, and is not asked";
  const auto kernels = record("first").kernels.value();
  EXPECT_THAT(kernels.chosen_by, testing::Not(testing::AnyOf("measured", "given", "")));
  EXPECT_GE(kernels.algorithms.size(), 15u);
  EXPECT_EQ(record("measures").kernels.value().chosen_by, "measured");
}

TEST_P(KernelsOfRuns, ThatWereMeasuredAreRepeatedElsewhere) {
  const std::string measured = checkpoint_of({"--steps", "4", "--measured-kernels"}, "there", "cache-there");
  const std::string again =
      checkpoint_of({"--steps", "4", "--kernels-from", "there/record.json"}, "here", "cache-here");
  EXPECT_EQ(again, measured);
  EXPECT_EQ(checkpoint_of({"--steps", "4", "--kernels-from", "there/checkpoint-00000004.safetensors"},
                          "and-here", "c"),
            measured)
      << "a checkpoint says it too";
  EXPECT_EQ(record("here").kernels.value().chosen_by, "given");
  EXPECT_EQ(record("here").kernels.value().algorithms, record("there").kernels.value().algorithms);
}

// As on two hosts, each with a cache of its own: the second takes what the first measured, which record and
// checkpoint name, so that a resume goes on with the kernels of before on both.
TEST_P(KernelsOfRuns, ThatTheFirstProcessMeasuredAreThoseOfAll) {
  if (!std::filesystem::exists(base::module_path(comm::gloo::kModule)))
    GTEST_SKIP() << "gloo is not built in";
  const auto measured = [](const std::filesystem::path& cache) {
    std::error_code none;
    return std::ranges::any_of(std::filesystem::directory_iterator(cache, none), [](const auto& entry) {
      return entry.path().filename().string().starts_with("kernels-");
    });
  };
  const auto cache_of = [&](int rank) {
    return (folder_.path() / ("cache" + std::to_string(rank))).string();
  };
  const auto outcome = run_two_processes(
      words_with({"--measured-kernels", "--steps", "2", "--out", "two"}),
      [&](int rank) -> RunConditions { return {.directory = folder_.path(), .cache = cache_of(rank)}; });
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(record("two").kernels.value().chosen_by, "measured");
  EXPECT_TRUE(measured(cache_of(0)));
  EXPECT_FALSE(measured(cache_of(1)));
}

TEST_P(KernelsOfRuns, OfTheCheckpointGoOnAfterAResume) {
  const std::string plain = checkpoint_of({"--steps", "6"}, "plain");
  const std::string file = with_other_kernels("plain");
  const std::string whole = checkpoint_of({"--steps", "6", "--kernels-from", file}, "whole");
  EXPECT_NE(whole, plain) << "other kernels round otherwise";
  EXPECT_EQ(run({"--epochs", "0.5", "--kernels-from", file, "--out", "part"}).code, 0);
  EXPECT_EQ(checkpoint_of({"--steps", "6", "--resume", "part"}, "rest"), whole)
      << "without a word of them in the resumed command";
  EXPECT_EQ(record("rest").kernels.value().chosen_by, "given");
}

TEST_P(KernelsOfRuns, ThatCannotBeHadAreRefusedOrSaid) {
  EXPECT_EQ(run({"--steps", "2", "--out", "a"}).code, 0);
  auto changed = record("a");
  changed.kernels.value().algorithms.begin()->second = "of-tomorrow";
  measure::write_record(folder_.path() / "changed.json", changed);
  const auto refused = run({"--steps", "2", "--kernels-from", "changed.json", "--out", "b"});
  EXPECT_EQ(refused.code, 2) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("of-tomorrow is not an algorithm of "));
  changed.kernels.reset();
  measure::write_record(folder_.path() / "older.json", changed);
  EXPECT_THAT(run({"--steps", "2", "--kernels-from", "older.json", "--out", "c"}).err,
              HasSubstr("it records no kernels"));
}

TEST_P(KernelsOfRuns, OtherLayersOfTheSameNamesAreNoModelToGoOnWith) {
  const std::string model = R"(name = "m"

[[layer]]
op = "conv2d"
channels = 8
kernel = 3
stride = 4
padding = 1

[[layer]]
op = "relu"

[[layer]]
op = "global_average_pool"

[[layer]]
op = "dense"
features = "classes"
)";
  (void)folder_.write("m.toml", model);
  ASSERT_EQ(run({"--model", "m.toml", "--steps", "2", "--out", "o"}).code, 0);
  std::string other = model;
  other.replace(other.find("stride = 4"), 10, "stride = 2");
  (void)folder_.write("m.toml", other);
  const auto outcome = run({"--model", "m.toml", "--steps", "4", "--resume", "o", "--out", "p"});
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("its run had other layers than m"));
}

INSTANTIATE_TEST_SUITE_P(, KernelsOfRuns, testing::Values("cpu", "cuda-on-host"), [](const auto& device) {
  return std::string(device.param) == "cpu" ? std::string("Cpu") : std::string("CudaOnHost");
});

}  // namespace
}  // namespace paceline::cli

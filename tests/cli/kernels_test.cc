/// Bits do not depend on what a machine has measured: by default no cache is read, and what a run computed
/// with stands in its record and checkpoint, where another run finds it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "base/shared_library.h"
#include "cli/program.h"
#include "comm/gloo/load.h"
#include "engine/kernel_cache.h"
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
    return newest_checkpoint(out);
  }
  /// The same of a run of two processes, the second with an instruction set of `isa` if that is not empty.
  std::string checkpoint_of_two(const Words& more, const std::string& out, const std::string& isa = "") {
    Words words = words_with(more);
    words.insert(words.end(), {"--out", out});
    const auto outcome = run_two_processes(words, [&](int rank) -> RunConditions {
      RunConditions conditions{.directory = folder_.path(), .cache = cache_of(rank).string()};
      if (rank == 1 && !isa.empty()) conditions.variables.emplace_back("PACELINE_MAX_CPU_ISA", isa);
      return conditions;
    });
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return newest_checkpoint(out);
  }
  std::filesystem::path cache_of(int rank) const { return folder_.path() / ("cache" + std::to_string(rank)); }
  std::string newest_checkpoint(const std::string& out) const {
    std::filesystem::path newest;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path() / out))
      if (entry.path().extension() == ".safetensors" && entry.path() > newest && !entry.is_symlink())
        newest = entry.path();
    return base::read_file(newest);
  }
  measure::Record record(const std::string& out) {
    return measure::read_record(folder_.path() / out / "record.json");
  }
  /// Another algorithm for every convolution of 16 channels, forward.
  static void change(engine::KernelAlgorithms& algorithms) {
    int count = 0;
    for (auto& [problem, algorithm] : algorithms) {
      if (problem.starts_with("conv2d forward from 16x32x32 to 16x32x32, kernel 3"))
        algorithm = algorithm == "onednn" ? "winograd" : "onednn";
      else if (problem.starts_with("forward, f32, 8x32x32x16 to 8x32x32x16, kernel 3"))
        algorithm = algorithm == "host-loops" ? "host-loops-descending" : "host-loops";
      else
        continue;
      ++count;
    }
    EXPECT_GT(count, 0);
  }
  std::string with_other_kernels(const std::string& out) {
    auto changed = record(out);
    change(changed.kernels.value().algorithms);
    const auto path = folder_.path() / (out + "-changed.json");
    measure::write_record(path, changed);
    return path.string();
  }

  /// Measures as the first process of two would, and writes other algorithms into its cache.
  void fill_cache_of_first() {
    ASSERT_EQ(run({"--measured-kernels", "--steps", "1", "--out", "fill"}, cache_of(0).string()).code, 0);
    int tables = 0;
    for (const auto& entry : std::filesystem::directory_iterator(cache_of(0))) {
      auto table = engine::kernel_table_from(base::read_file(entry.path()));
      if (!table) continue;
      change(table->algorithms);
      base::write_file(entry.path(), engine::as_text(*table));
      ++tables;
    }
    ASSERT_EQ(tables, 1);
  }
  /// The tensors of a checkpoint: what follows its header, whose length is its first eight bytes.
  static std::string tensors_of(const std::string& checkpoint) {
    std::uint64_t header = 0;
    std::memcpy(&header, checkpoint.data(), sizeof header);
    return checkpoint.substr(sizeof header + header);
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
  fill_cache_of_first();
  const auto measured = checkpoint_of_two({"--measured-kernels", "--steps", "2"}, "two");
  const auto kernels = record("two").kernels.value();
  EXPECT_EQ(kernels.chosen_by, "measured");
  EXPECT_FALSE(std::filesystem::exists(cache_of(1))) << "the second measures nothing";
  EXPECT_EQ(checkpoint_of_two({"--kernels-from", "two/record.json", "--steps", "2"}, "again"), measured)
      << "as if both had been told";
  EXPECT_NE(tensors_of(checkpoint_of_two({"--steps", "2"}, "usual")), tensors_of(measured))
      << "other kernels round otherwise";
  for (const auto& note : record("two").notes)
    EXPECT_THAT(note, testing::Not(HasSubstr("not all processes")));
}

// As on a host with another processor: the second process cannot use what the first one has measured.
TEST_P(KernelsOfRuns, ThatAnotherProcessCannotUseAreSaid) {
  if (!std::filesystem::exists(base::module_path(comm::gloo::kModule)))
    GTEST_SKIP() << "gloo is not built in";
  if (std::string(GetParam()) != "cpu") GTEST_SKIP() << "the host runtime has the same algorithms everywhere";
  fill_cache_of_first();
  (void)checkpoint_of_two({"--measured-kernels", "--steps", "2"}, "mixed", "baseline");
  const auto kernels = record("mixed").kernels.value();
  const auto winograd =
      std::ranges::count_if(kernels.algorithms, [](const auto& one) { return one.second == "winograd"; });
  ASSERT_GT(winograd, 0) << "which needs AVX2";
  EXPECT_THAT(record("mixed").notes,
              testing::Contains(testing::AllOf(
                  HasSubstr("not all processes use the algorithms of process 0"), HasSubstr("process 1 on "),
                  HasSubstr(" of " + std::to_string(kernels.algorithms.size()) + " problems)"))));
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

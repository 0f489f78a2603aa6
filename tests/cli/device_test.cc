#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "base/file.h"
#include "measure/record.h"
#include "program.h"

namespace paceline::cli {
namespace {

using testing::HasSubstr;
using Words = std::vector<std::string>;

constexpr const char* kModel = R"(
[[layer]]
op = "conv2d"
name = "conv1"
channels = 8
kernel = 3
padding = 1
stride = 2
[[layer]]
op = "batch_norm"
name = "bn1"
[[layer]]
op = "relu"
[[layer]]
op = "max_pool"
kernel = 4
[[layer]]
op = "dense"
name = "fc"
features = "classes"
)";

/// Commands on the CUDA engine on the processor, with a model that it steps through in milliseconds.
class CudaOnHost : public testing::Test {
 protected:
  CudaOnHost() { (void)folder_.write("m.toml", kModel); }

  Words words(const std::string& command, const Words& more) const {
    Words all{command,    "--model",      "m.toml",   "--data",    "synthetic,train=64,test=16",
              "--device", "cuda-on-host", "--no-pin", "--threads", "1"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Outcome run(const std::string& command, const Words& more) const {
    return run_program(words(command, more), {.directory = folder_.path()});
  }
  std::string checkpoint(const std::string& out, const std::string& update) const {
    return base::read_file(folder_.path() / out / ("checkpoint-" + update + ".safetensors"));
  }
  /// The records of a folder: each says device and runtime.
  void expect_records(const std::string& folder, std::size_t count) const {
    std::size_t found = 0;
    for (const auto& file : std::filesystem::directory_iterator(folder_.path() / folder)) {
      const auto record = measure::read_record(file.path());
      if (record.status == "skipped") continue;
      ++found;
      EXPECT_EQ(record.status, "complete") << record.id << ": " << record.reason;
      EXPECT_EQ(record.device, "cuda-on-host");
      EXPECT_EQ(record.device_name, "processor (no GPU)");
    }
    EXPECT_EQ(found, count);
  }

  Folder folder_;
};

TEST_F(CudaOnHost, TrainsWithTheSameBitsForOneAndTwoWorkersOfShards) {
  const Words shards{"--global-batch", "16", "--steps", "6", "--shard", "4"};
  for (const char* workers : {"1", "2"}) {
    Words more = shards;
    more.insert(more.end(), {"--workers", workers, "--out", std::string("w") + workers});
    const auto outcome = run("train", more);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("no GPU: the CUDA engine on the processor"));
    EXPECT_THAT(outcome.out, testing::Not(HasSubstr("--measured-kernels"))) << "shards measure none anywhere";
  }
  EXPECT_EQ(checkpoint("w1", "00000006"), checkpoint("w2", "00000006"));
}

TEST_F(CudaOnHost, KilledAndResumedEndsWithTheBitsOfTheUninterruptedRun) {
  const Words all{"--global-batch",   "16", "--epochs",          "40", "--workers", "2",
                  "--evaluate-every", "0",  "--measured-kernels"};
  Words whole = all, part = all;
  whole.insert(whole.end(), {"--out", "whole"});
  part.insert(part.end(), {"--out", "part"});
  const auto uninterrupted = run("train", whole);
  ASSERT_EQ(uninterrupted.code, 0) << uninterrupted.err;
  EXPECT_EQ(measure::read_record(folder_.path() / "whole" / "record.json").kernels.value().chosen_by,
            "measured");
  {
    Program program(words("train", part), {.directory = folder_.path()});
    ASSERT_TRUE(program.wait_for("epoch 2 "));
    program.signal(SIGKILL);
    (void)program.finish();
  }
  ASSERT_FALSE(std::filesystem::exists(folder_.path() / "part/checkpoint-00000160.safetensors"));
  part.insert(part.end(), {"--resume", "part"});
  const auto outcome = run("train", part);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(checkpoint("part", "00000160"), checkpoint("whole", "00000160"));
}

TEST_F(CudaOnHost, SweepsAndItsTablesSayThatThereIsNoGpu) {
  const auto outcome =
      run("sweep", {"--batches", "8,16", "--repeats", "1", "--window-steps", "3", "--out", "o"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("EMULATED (marked emulated) in "));
  EXPECT_THAT(outcome.out, HasSubstr("no GPU: the CUDA engine on the processor"));
  expect_records("o/records", 2);
}

TEST_F(CudaOnHost, ScalesOverWorkersThatShareTheDevice) {
  const auto outcome = run("scale", {"--batches", "8", "--workers", "1,2", "--repeats", "1", "--window-steps",
                                     "3", "--mode", "weak", "--out", "o"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("no GPU: the CUDA engine on the processor"));
  expect_records("o/records", 2);
}

TEST_F(CudaOnHost, StudiesWhole) {
  const auto outcome =
      run("study", {"--batches", "8,16", "--workers", "1,2", "--repeats", "1", "--window-steps", "2",
                    "--warmup-steps", "1", "--epochs", "1", "--large-batch", "32", "--out", "o"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "o/report.html"));
  for (const auto& file : std::filesystem::directory_iterator(folder_.path() / "o/records")) {
    const auto record = measure::read_record(file.path());
    EXPECT_THAT(record.status, testing::AnyOf("complete", "skipped")) << record.id << ": " << record.reason;
  }
}

TEST_F(CudaOnHost, DoctorListsItsKernels) {
  const auto outcome = run_program({"doctor", "--kernels", "m.toml", "--input", "3x32x32", "--device",
                                    "cuda-on-host", "--no-measure", "--local-batch", "4"},
                                   {.directory = folder_.path()});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::ContainsRegex("  step +captured sections\n"));
}

/// On a machine without a GPU: one sentence, at once, with the exit code of a missing device.
TEST_F(CudaOnHost, WithoutAGpuCudaSaysWhatIsMissing) {
  if (std::filesystem::exists("/dev/nvidia0")) GTEST_SKIP() << "there is a GPU";
  for (const char* device : {"cuda", "cuda:1"})
    for (const char* command : {"train", "sweep"}) {
      const auto outcome = run_program({command, "--model", "m.toml", "--data", "synthetic,train=64,test=16",
                                        "--device", device, "--out", "missing"},
                                       {.directory = folder_.path()});
      EXPECT_EQ(outcome.code, 4) << command << ": " << outcome.err;
      EXPECT_THAT(outcome.err, HasSubstr("--device cuda"));
    }
}

}  // namespace
}  // namespace paceline::cli

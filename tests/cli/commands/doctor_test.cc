// What `doctor` says of shared memory and of the precision, and that everything else that speaks of
// --precision auto says the same.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/program.h"
#include "engine/make.h"
#include "measure/record.h"
#include "train/given/names.h"

namespace paceline::cli {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using Words = std::vector<std::string>;
using Variables = std::vector<std::pair<std::string, std::string>>;

/// Both programs' kernels held to an instruction set.
Variables held_to(const std::string& ours, const std::string& onednns) {
  return {{"PACELINE_MAX_CPU_ISA", ours}, {"ONEDNN_MAX_CPU_ISA", onednns}};
}

/// Runs well, and prints this.
std::string output_of(const Words& words, const RunConditions& circumstances = {}) {
  const auto outcome = run_program(words, circumstances);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return outcome.out;
}

/// The line of `doctor --no-measure` and `more` about the precision.
std::string line_of_doctor(const Words& more, const Variables& variables = {}) {
  Words words{"doctor", "--no-measure"};
  words.insert(words.end(), more.begin(), more.end());
  const auto out = output_of(words, {.variables = variables});
  const auto begin = out.find("  precision ");
  EXPECT_NE(begin, std::string::npos) << out;
  return begin == std::string::npos ? "" : out.substr(begin, out.find('\n', begin) - begin);
}

TEST(Doctor, SaysWhatAutoTakesAndWhy) {
  for (const char* device : {"cpu", "reference", "cuda-on-host"}) {
    const auto expected = engine::auto_precision(device);
    EXPECT_EQ(line_of_doctor({"--device", device}), "  precision     auto takes " +
                                                        std::string(train::name(expected.precision)) + ": " +
                                                        expected.reason);
  }
  EXPECT_THAT(line_of_doctor({}, held_to("avx2", "AVX2")),
              HasSubstr("auto takes fp32: this processor has no units"));
}

TEST(Doctor, SaysWhereContainersShareTooLittleMemory) {
  EXPECT_EQ(text_about_shared_memory(8'200'000'000, 8'000'000'000), "8.20 GB in /dev/shm, 8.00 GB available");
  EXPECT_EQ(text_about_shared_memory(67'108'864, 60'000'000),
            "0.07 GB in /dev/shm, 0.06 GB available; NCCL may fail between processes of this host "
            "(ncclSystemError): start containers with --shm-size=1g");
}

TEST(Doctor, TakesTheImageAsGiven) {
  const auto small = run_program({"doctor", "--no-measure", "--kernels", "vgg16_bn", "--input", "3x8x8"});
  EXPECT_EQ(small.code, 2);
  EXPECT_THAT(small.err, testing::AllOf(HasSubstr("vgg16_bn"), testing::Not(HasSubstr("224"))));
  EXPECT_THAT(output_of({"doctor", "--no-measure", "--kernels", "mnist-cnn", "--local-batch", "4"}),
              HasSubstr("kernels of mnist-cnn"));
}

/// What `words` and a plan, kernels and records of the same processor say of --precision auto.
void expect_the_same_everywhere(const std::string& precision, const Variables& variables) {
  const Folder folder;
  const RunConditions here{.directory = folder.path(), .variables = variables};
  EXPECT_THAT(output_of({"doctor", "--no-measure", "--kernels", "resnet8-cifar", "--local-batch", "8"}, here),
              HasSubstr("local batch 8, " + precision + ","));
  const Words data{"--model", "resnet8-cifar", "--data", "synthetic,train=64,test=16"};
  Words plan{"train", "--plan", "--json", "--local-batch", "8"};
  plan.insert(plan.end(), data.begin(), data.end());
  EXPECT_EQ(nlohmann::json::parse(output_of(plan, here))["training"]["precision"], precision);
  Words scale{"scale", "--batches",      "8", "--workers", "1", "--mode", "weak", "--repeats",
              "1",     "--window-steps", "1", "--out",     "o"};
  scale.insert(scale.end(), data.begin(), data.end());
  (void)output_of(scale, here);
  const auto record = measure::read_record(folder.path() / "o/records/scale-weak-w1-b8-r0.json");
  EXPECT_EQ(record.precision, precision);
  ASSERT_TRUE(record.peak);
  EXPECT_EQ(record.peak->precision, precision) << "the peak of the cores, to compare steps with";
}

TEST(Doctor, SaysWhatPlanKernelsPeakAndRunsTake) {
  expect_the_same_everywhere(std::string(train::name(engine::auto_precision("cpu").precision)), {});
  expect_the_same_everywhere("fp32", held_to("avx512", "AVX512_CORE"));
}

}  // namespace
}  // namespace paceline::cli

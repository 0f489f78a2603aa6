#include "engine/cuda/cudnn/plans.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "engine/cuda/conv_problems.h"
#include "engine/cuda/cudnn/device_descriptions.h"
#include "engine/cuda/cudnn/real_cudnn.h"
#include "engine/cuda/runtime/runtime.h"
#include "graph/zoo.h"

// Plans of cuDNN for devices that are only described. Nothing here runs on a GPU.
namespace paceline::engine::cuda::cudnn {
namespace {

const std::size_t kLimitOfH100 = workspace_limit(test::kH100.memory_bytes);

/// Every convolution and dense layer of the zoo at the image size that the model is used at, in these
/// precisions and three directions, each once.
std::vector<ConvProblem> problems_of_the_zoo(int batch, const std::vector<Precision>& precisions = {
                                                            Precision::bf16, Precision::f32}) {
  const struct {
    const char* model;
    graph::Shape input;
    int classes;
  } usual[] = {{"mnist-cnn", {1, 28, 28}, 10},
               {"resnet18", {3, 224, 224}, 1000},
               {"resnet18-cifar", {3, 32, 32}, 10},
               {"resnet8-cifar", {3, 32, 32}, 10}};
  EXPECT_EQ(std::size(usual), graph::models_in_code().size()) << "a model of the zoo is missing here";
  std::vector<ConvProblem> problems;
  for (const auto& [model, input, classes] : usual)
    for (const Precision precision : precisions)
      for (const ConvProblem& problem :
           conv_problems(graph::make_model(model, input, classes, 0), batch, precision))
        if (std::find(problems.begin(), problems.end(), problem) == problems.end())
          problems.push_back(problem);
  return problems;
}

/// Plans all that the device can compute; each must have an engine that qualifies.
void plan_all(const CudnnApi& api, const test::DescribedDevice& described, int batch) {
  using Clock = std::chrono::steady_clock;
  const TargetDevice device = test::target_of(api, test::json_of(described));
  std::vector<Precision> precisions{Precision::f32};
  if (has_bf16_units(described.capability / 10)) precisions.push_back(Precision::bf16);
  const std::vector<ConvProblem> problems = problems_of_the_zoo(batch, precisions);
  const std::size_t limit = workspace_limit(described.memory_bytes);
  std::size_t workspace = 0;
  double slowest = 0, all = 0;
  int without_tensor_cores = 0, compiled = 0;
  for (const ConvProblem& problem : problems) {
    const auto begin = Clock::now();
    try {
      const Plan plan = first_plan(device, problem, limit);
      EXPECT_LE(plan.workspace_bytes, limit);
      EXPECT_TRUE(plan.engine.deterministic) << describe(problem);
      EXPECT_FALSE(problem.precision == Precision::f32 && plan.engine.tensor_cores) << describe(problem);
      workspace = std::max(workspace, plan.workspace_bytes);
      without_tensor_cores += problem.precision == Precision::bf16 && !plan.engine.tensor_cores;
      compiled += plan.engine.compiled_at_run_time;
    } catch (const base::Error& error) {
      ADD_FAILURE() << described.name << ": " << error.what();
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    slowest = std::max(slowest, seconds);
    all += seconds;
  }
  fmt::print(
      "cuDNN {}, {}, batch {}: {} problems planned in {:.1f} s, the slowest took {:.2f} s, largest workspace "
      "{:.1f} MB, {} in bf16 without tensor cores, {} compiled at run time\n",
      cudnn_version(api), described.name, batch, problems.size(), all, slowest,
      static_cast<double>(workspace) / 1e6, without_tensor_cores, compiled);
}

class CudnnDescribed : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    api_ = test::real_cudnn(reason);
    if (!api_) GTEST_SKIP() << reason;
  }
  std::optional<CudnnApi> api_;
};

TEST_F(CudnnDescribed, EveryConvolutionOfTheZooHasAPlanOnAnH100) { plan_all(*api_, test::kH100, 128); }

// cuDNN has no deterministic engine for bf16 there, so that an attempt would end at each layer.
TEST_F(CudnnDescribed, TuringComputesInFp32Alone) {
  const TargetDevice device = test::target_of(*api_, test::json_of(test::kT4));
  const auto graph = graph::make_model("resnet8-cifar", {3, 32, 32}, 10, 0);
  for (const ConvProblem& problem : conv_problems(graph, 128, Precision::f32))
    EXPECT_NO_THROW((void)first_plan(device, problem, workspace_limit(test::kT4.memory_bytes)));
  EXPECT_FALSE(has_bf16_units(test::kT4.capability / 10));
  EXPECT_THROW((void)first_plan(device, conv_problems(graph, 128, Precision::bf16).front(), kLimitOfH100),
               base::Error);
}

TEST_F(CudnnDescribed, TheFirstPlanIsTheSameEachTime) {
  const TargetDevice device = test::target_of(*api_, test::json_of(test::kH100));
  const ConvProblem problem = problems_of_the_zoo(32).at(5);
  const Plan first = first_plan(device, problem, kLimitOfH100);
  EXPECT_EQ(first_plan(device, problem, kLimitOfH100).engine, first.engine);
  EXPECT_EQ(plans_to_measure(device, problem, kLimitOfH100, 8).front().engine, first.engine);
}

// A refused first engine can make a batch several times slower than the batches beside it.
TEST_F(CudnnDescribed, TheWorkspaceLimitRefusesNoFirstEngine) {
  const TargetDevice device = test::target_of(*api_, test::json_of(test::kH100));
  for (const int batch : {512, 1024, 2048})
    for (const Precision precision : {Precision::bf16, Precision::f32}) {
      std::vector<ConvProblem> seen;
      for (const ConvProblem& problem :
           conv_problems(graph::make_model("resnet18-cifar", {3, 32, 32}, 10, 0), batch, precision)) {
        if (std::find(seen.begin(), seen.end(), problem) != seen.end()) continue;
        seen.push_back(problem);
        const Plan unlimited = first_plan(device, problem, std::size_t{1} << 40);
        EXPECT_EQ(first_plan(device, problem, kLimitOfH100).engine, unlimited.engine)
            << describe(problem) << ": " << unlimited.workspace_bytes / 1e6 << " MB";
      }
    }
}

TEST(CudnnPlans, AllowWorkspaceByTheDevicesMemory) {
  constexpr std::size_t kMegabyte = std::size_t{1} << 20;
  EXPECT_EQ(workspace_limit(0), 256 * kMegabyte) << "not known";
  EXPECT_EQ(workspace_limit(std::int64_t{11} << 30), 512 * kMegabyte);
  EXPECT_EQ(workspace_limit(std::int64_t{16} << 30), 1024 * kMegabyte);
  EXPECT_EQ(workspace_limit(std::int64_t{150} << 30), 2048 * kMegabyte);
}

// Tile sizes and the like: without them an engine's proposals could not be told apart.
TEST_F(CudnnDescribed, PlansToBeMeasuredDifferInEngineOrKnobs) {
  const TargetDevice device = test::target_of(*api_, test::json_of(test::kH100));
  const ConvProblem problem = {.precision = Precision::bf16,
                               .samples = 128,
                               .channels_in = 64,
                               .height_in = 32,
                               .width_in = 32,
                               .channels_out = 64,
                               .height_out = 32,
                               .width_out = 32,
                               .kernel_height = 3,
                               .kernel_width = 3,
                               .padding = 1};
  const std::vector<Plan> plans = plans_to_measure(device, problem, kLimitOfH100, 8);
  ASSERT_EQ(plans.size(), 8u);
  std::set<std::string> names;
  std::set<std::int64_t> engines;
  for (const Plan& plan : plans) {
    EXPECT_NE(plan.engine.knobs, "");
    names.insert(fmt::format("{} {}", plan.engine.index, plan.engine.knobs));
    engines.insert(plan.engine.index);
  }
  EXPECT_EQ(names.size(), 8u);
  EXPECT_LT(engines.size(), 8u);  // an engine is proposed with several tile sizes
}

/// Long, hence a test of its own for each device.
class CudnnDescribedDevices : public CudnnDescribed,
                              public ::testing::WithParamInterface<test::DescribedDevice> {};

TEST_P(CudnnDescribedDevices, EveryConvolutionOfTheZooHasAPlanAtEveryBatch) {
  if (std::getenv("PACELINE_LONG") == nullptr) GTEST_SKIP() << "long: set PACELINE_LONG=1";
  for (const int batch : {1, 7, 128, 512}) plan_all(*api_, GetParam(), batch);
}

/// The problems of resnet18-cifar whose first engine is not the same at all of these batches: how many of how
/// many, then each with its engines by number.
std::string text_of_other_engines(const TargetDevice& device, Precision precision, std::size_t limit) {
  constexpr int kBatches[] = {256, 400, 512, 1024};
  const auto graph = graph::make_model("resnet18-cifar", {3, 32, 32}, 10, 0);
  std::vector<ConvProblem> problems;
  for (const ConvProblem& problem : conv_problems(graph, kBatches[0], precision))
    if (std::ranges::find(problems, problem) == problems.end()) problems.push_back(problem);
  std::string which;
  int others = 0;
  for (ConvProblem problem : problems) {
    std::vector<std::int64_t> engines;
    for (const int batch : kBatches) {
      problem.samples = batch;
      engines.push_back(first_plan(device, problem, limit).engine.index);
    }
    if (std::ranges::count(engines, engines.front()) == std::ssize(engines)) continue;
    ++others;
    which += fmt::format("; {} {}-{} {}x{} k{}: {}",
                         problem.direction == ConvDirection::forward         ? "forward"
                         : problem.direction == ConvDirection::backward_data ? "d_src"
                                                                             : "d_weight",
                         problem.channels_in, problem.channels_out, problem.height_in, problem.width_in,
                         problem.kernel_height, fmt::join(engines, " "));
  }
  return fmt::format("{} of {}{}", others, problems.size(), which);
}

// A batch curve gets a step where the engine changes, so the table of docs/gpu.md says where it does.
TEST_P(CudnnDescribedDevices, TheTableSaysWhereEnginesChange) {
  if (std::getenv("PACELINE_LONG") == nullptr) GTEST_SKIP() << "long: set PACELINE_LONG=1";
  if (cudnn_version(*api_) != "9.19.0") GTEST_SKIP() << "the table is of cuDNN 9.19.0";
  const test::DescribedDevice& described = GetParam();
  const TargetDevice device = test::target_of(*api_, test::json_of(described));
  const std::size_t limit = workspace_limit(described.memory_bytes);
  const std::string row = fmt::format("| {} | {} | {} |", described.short_name,
                                      has_bf16_units(described.capability / 10)
                                          ? text_of_other_engines(device, Precision::bf16, limit)
                                          : "none",
                                      text_of_other_engines(device, Precision::f32, limit));
  EXPECT_THAT(base::read_file(PACELINE_SOURCE_DIR "/docs/gpu.md"), ::testing::HasSubstr(row)) << row;
}

INSTANTIATE_TEST_SUITE_P(, CudnnDescribedDevices, ::testing::ValuesIn(test::kDescribedDevices),
                         [](const auto& device) { return std::string(device.param.short_name); });

TEST_F(CudnnDescribed, ADescriptionWithoutAKeyIsRefusedByName) {
  std::string json = test::json_of(test::kH100);
  const std::string key = R"("warpSize":32,)";
  json.erase(json.find(key), key.size());
  try {
    const TargetDevice device = test::target_of(*api_, json);
    ADD_FAILURE() << "it was accepted";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("device properties"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("a described device"));
  }
}

}  // namespace
}  // namespace paceline::engine::cuda::cudnn

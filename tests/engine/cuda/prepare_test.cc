// How the algorithms of a run on a device are chosen: by default, as given by an earlier run, or measured.

#include "engine/cuda/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "base/file.h"
#include "engine/cuda/compare.h"
#include "engine/cuda/program.h"

namespace paceline::engine::cuda {
namespace {

using testing::HasSubstr;

class CudaPrepare : public testing::Test {
 protected:
  CudaPrepare() {
    std::string name = (std::filesystem::temp_directory_path() / "paceline-prepare-XXXXXX").string();
    cache_ = ::mkdtemp(name.data());
    if (const char* before = ::getenv("PACELINE_CACHE")) before_ = before;
    ::setenv("PACELINE_CACHE", cache_.c_str(), 1);
  }
  ~CudaPrepare() override {
    before_.empty() ? ::unsetenv("PACELINE_CACHE") : ::setenv("PACELINE_CACHE", before_.c_str(), 1);
    std::filesystem::remove_all(cache_);
  }

  PreparedKernels prepare_with(const KernelRequest& request) {
    HostRuntime runtime;
    return prepare(graph_, options_, request, runtime);
  }
  /// The other algorithm for every problem whose name begins so.
  static KernelAlgorithms changed(KernelAlgorithms algorithms, const std::string& begin = "") {
    for (auto& [problem, algorithm] : algorithms)
      if (problem.starts_with(begin) && algorithm != "separate")
        algorithm = algorithm == "host-loops" ? "host-loops-descending" : "host-loops";
    return algorithms;
  }
  std::vector<float> weights_with(std::shared_ptr<const KernelAlgorithms> algorithms) {
    CompileOptions options = options_;
    options.algorithms = std::move(algorithms);
    const auto engine = compile_on_host(graph_, options);
    return run_steps(*engine, options).weights;
  }

  const graph::Graph graph_ = toy::every_op();
  CompileOptions options_{.batch = 4, .rule = {.momentum = 0.9}, .seed = 3};
  std::filesystem::path cache_;
  std::string before_;
};

TEST_F(CudaPrepare, ByDefaultSaysEveryProblemAndNothingToTheUser) {
  const auto prepared = prepare_with({});
  EXPECT_EQ(prepared.chosen_by, "rules");
  EXPECT_EQ(prepared.note, "");
  EXPECT_GE(prepared.algorithms->size(), 6u);
  for (const auto& [problem, algorithm] : *prepared.algorithms) {
    EXPECT_EQ(algorithm, problem.find(", with ") != std::string::npos ? "separate" : "host-loops") << problem;
    EXPECT_EQ(algorithm.find(' '), std::string::npos) << "a line of the cache is ALGORITHM PROBLEM";
  }
  EXPECT_TRUE(std::filesystem::is_empty(cache_)) << "no cache is read or written";
  EXPECT_EQ(weights_with(prepared.algorithms), weights_with(nullptr));
}

TEST_F(CudaPrepare, TakesWhatAnEarlierRunUsedAndComputesWithIt) {
  const auto usual = prepare_with({});
  for (const char* direction : {"forward", "backward data", "backward weights"}) {
    const auto given = changed(*usual.algorithms, direction);
    ASSERT_NE(given, *usual.algorithms);
    const auto prepared = prepare_with({.given = given, .insists = true});
    EXPECT_EQ(prepared.chosen_by, "given");
    EXPECT_EQ(*prepared.algorithms, given);
    EXPECT_EQ(prepared.note, "");
    const auto weights = weights_with(prepared.algorithms);
    EXPECT_NE(weights, weights_with(usual.algorithms)) << direction << ": other bits";
    EXPECT_EQ(weights, weights_with(prepared.algorithms)) << direction << ": the same each time";
  }
}

/// Every convolution that can compute more than itself does, among those whose names end so.
KernelAlgorithms fused(KernelAlgorithms algorithms, const std::string& end = "") {
  for (auto& [problem, algorithm] : algorithms)
    if (algorithm == "separate" && problem.ends_with(end)) algorithm = "host-loops";
  return algorithms;
}

/// A residual block of each kind behind another: the shortcut as it is, and by a convolution.
graph::Graph residual_blocks() {
  graph::Builder model("blocks");
  int x = model.conv2d(model.input({3, 8, 8}), "stem", {.channels = 16, .padding = 1});
  x = model.relu(model.batch_norm(x, "bn"));
  for (const auto& [name, channels, stride] :
       {std::tuple{std::string("a"), 16, 1}, {std::string("b"), 16, 1}, {std::string("c"), 24, 2}}) {
    int y = model.conv2d(x, name + ".conv1", {.channels = channels, .stride = stride, .padding = 1});
    y = model.relu(model.batch_norm(y, name + ".bn1"));
    y = model.batch_norm(model.conv2d(y, name + ".conv2", {.channels = channels, .padding = 1}),
                         name + ".bn2");
    if (stride != 1)
      x = model.batch_norm(
          model.conv2d(x, name + ".conv3", {.channels = channels, .kernel = 1, .stride = stride}),
          name + ".bn3");
    x = model.relu(model.add(y, x));
  }
  model.loss(model.dense(model.global_average_pool(x), "fc", {.features = 5}), 0.1);
  return model.finish();
}

TEST_F(CudaPrepare, ConvolutionsComputeWhatTheirBatchNormsNeedWhereThatWasChosen) {
  for (const graph::Graph& graph : {graph_, residual_blocks()})
    for (const Precision precision : kPrecisions)
      for (const char* end : {", with statistics", ", with mask and sums", ", with sum, mask and sums", ""}) {
        SCOPED_TRACE(graph.name + ", " + name_of(precision) + end);
        options_.precision = precision;
        HostRuntime runtime;
        const auto usual = prepare(graph, options_, {}, runtime);
        const auto given = fused(*usual.algorithms, end);
        if (graph.name == "blocks") {
          ASSERT_NE(given, *usual.algorithms);
        }
        const auto prepared = prepare(graph, options_, {.given = given, .insists = true}, runtime);
        EXPECT_EQ(*prepared.algorithms, given);
        CompileOptions options = options_;
        options.algorithms = prepared.algorithms;
        const auto engine = compile_on_host(graph, options);
        const Expected got = run_steps(*engine, options);
        CompileOptions exact = options_;
        exact.precision = Precision::f32;  // as the reference computes, in double
        expect_near(*engine, got, expected_of(graph, exact), tolerance(precision, 200));
        // In any order of streams, captured or not, the same bits.
        for (const bool captures : {true, false}) {
          options.captures = captures;
          const auto other =
              compile(graph, options,
                      std::make_unique<HostRuntime>(HostRuntimeOptions{.order = StreamOrder::last_first}),
                      {.name = "cuda", .poison = true});
          EXPECT_EQ(run_steps(*other, options).weights, got.weights);
        }
      }
}

TEST_F(CudaPrepare, FusedConvolutionsAreThoseWhoseBatchNormsCanTakeTheirSums) {
  HostRuntime runtime;
  const graph::Graph graph = residual_blocks();
  const Program program(graph, options_, runtime);
  int statistics = 0, one_term = 0, two_terms = 0;
  for (const ConvChoice& choice : program.convolutions()) {
    statistics += choice.problem.has_statistics;
    one_term += choice.problem.has_masked_sums && !choice.problem.has_addend;
    two_terms += choice.problem.has_addend;
  }
  EXPECT_EQ(statistics, 8) << "each convolution has a batch norm of its own";
  EXPECT_EQ(one_term, 3) << "within the blocks";
  EXPECT_EQ(two_terms, 2) << "before a and b; the convolutions behind b have a stride";
}

TEST_F(CudaPrepare, NoConvolutionSumsWhatIsNotOfTheWholeBatchAlone) {
  const auto count = [&] {
    const auto algorithms = prepare_with({}).algorithms;
    return std::ranges::count_if(*algorithms, [](const auto& one) { return one.second == "separate"; });
  };
  EXPECT_GT(count(), 0);
  CompileOptions plain = options_;
  options_.batch_norm = BatchNormMode::ghost;
  options_.ghost_size = 2;
  EXPECT_EQ(count(), 0);
  options_ = plain;
  options_.batch_norm = BatchNormMode::synchronised;
  options_.shard = 2;
  EXPECT_EQ(count(), 0);
  options_ = plain;
  options_.training = false;
  EXPECT_EQ(count(), 0);
}

TEST_F(CudaPrepare, MeasuresNoFusedProblemWhereThatIsSwitchedOff) {
  const auto all = *prepare_with({.is_measured = true}).algorithms;
  const auto separate = *prepare_with({.is_measured = true, .measures_fused = false}).algorithms;
  EXPECT_LT(separate.size(), all.size());
  for (const auto& [problem, algorithm] : all)
    EXPECT_EQ(separate.contains(problem), problem.find(", with ") == std::string::npos) << problem;
}

TEST_F(CudaPrepare, SaysWhatCannotBeHadHereOrFailsWhereItMust) {
  auto given = *prepare_with({}).algorithms;
  given.begin()->second = "cudnn-9.19.0-engine-62(14=1)";
  given.erase(std::next(given.begin()));
  const auto prepared = prepare_with({.given = given});
  EXPECT_THAT(prepared.note, HasSubstr("1 did not occur there"));
  EXPECT_THAT(prepared.note, HasSubstr("1 cannot be computed here as they were there"));
  EXPECT_THAT(prepared.note,
              HasSubstr("cudnn-9.19.0-engine-62(14=1) is not an algorithm of the CUDA engine on"));
  EXPECT_EQ(*prepared.algorithms, *prepare_with({}).algorithms);
  try {
    (void)prepare_with({.given = given, .insists = true});
    FAIL() << "--kernels-from insists";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::usage);
    EXPECT_THAT(error.what(), HasSubstr("--kernels-from: " + given.begin()->first));
    EXPECT_THAT(error.what(), HasSubstr("leave the option out"));
  }
}

TEST_F(CudaPrepare, MeasuresOnceAndFindsTheSameAgain) {
  const auto first = prepare_with({.is_measured = true});
  EXPECT_EQ(first.chosen_by, "measured");
  EXPECT_THAT(first.note, HasSubstr("kernels: measured in"));
  EXPECT_THAT(first.note, HasSubstr(cache_.string()));
  EXPECT_EQ(first.algorithms->size(), prepare_with({}).algorithms->size());
  const auto second = prepare_with({.is_measured = true});
  EXPECT_EQ(*second.algorithms, *first.algorithms);
  EXPECT_THAT(second.note, testing::Not(HasSubstr("measured in")));
  EXPECT_EQ(prepare_with({}).chosen_by, "rules") << "a full cache is not asked by default";
}

TEST_F(CudaPrepare, WhatCannotBeKeptIsNotTaken) {
  std::filesystem::remove_all(cache_);
  base::write_file(cache_, std::string_view("in the way of a folder"));
  const auto prepared = prepare_with({.is_measured = true});
  EXPECT_EQ(prepared.chosen_by, "rules");
  EXPECT_THAT(prepared.note, HasSubstr("cannot be stored"));
  EXPECT_EQ(*prepared.algorithms, *prepare_with({}).algorithms);
}

TEST_F(CudaPrepare, OfAnEvaluationAreForwardPassesAlone) {
  options_.training = false;
  const auto algorithms = prepare_with({}).algorithms;
  for (const auto& [problem, algorithm] : *algorithms)
    EXPECT_TRUE(problem.starts_with("forward, f32, ")) << problem;
}

}  // namespace
}  // namespace paceline::engine::cuda

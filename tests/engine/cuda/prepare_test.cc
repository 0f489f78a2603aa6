// How the algorithms of a run on a device are chosen: by default, as given by an earlier run, or measured.

#include "engine/cuda/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/file.h"
#include "engine/cuda/compare.h"
#include "engine/kernel_cache.h"

namespace paceline::engine::cuda {
namespace {

using testing::AllOf;
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
      if (problem.starts_with(begin))
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
    EXPECT_EQ(algorithm, "host-loops") << problem;
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

/// A device on which some algorithms turn out not to start.
class PickyRuntime : public HostRuntime {
 public:
  explicit PickyRuntime(std::set<std::string> refused) : refused_(std::move(refused)) {}
  [[nodiscard]] std::unique_ptr<Convolution> make_convolution(const ConvProblem& problem,
                                                              const std::string& algorithm) override {
    return std::make_unique<One>(*this, HostRuntime::make_convolution(problem, algorithm),
                                 problem.direction == ConvDirection::forward);
  }
  int runs = 0;

 private:
  class One final : public Convolution {
   public:
    One(PickyRuntime& owner, std::unique_ptr<Convolution> whole, bool is_picky)
        : owner_(owner), whole_(std::move(whole)), is_picky_(is_picky) {}
    [[nodiscard]] std::size_t workspace_bytes() const override { return 4096; }
    [[nodiscard]] std::string algorithm() const override { return whole_->algorithm(); }
    [[nodiscard]] bool is_untried() const override { return true; }
    void run(Stream stream, const ConvOperands& operands) override {
      EXPECT_NE(operands.workspace, nullptr);
      ++owner_.runs;
      if (is_picky_ && owner_.refused_.contains(algorithm()))
        throw AlgorithmRefused("cuDNN: cudnnBackendExecute failed", "cannot be started: no");
      whole_->run(stream, operands);
    }

   private:
    PickyRuntime& owner_;
    const std::unique_ptr<Convolution> whole_;
    const bool is_picky_;
  };
  const std::set<std::string> refused_;
};

TEST_F(CudaPrepare, PassesOverWhatTheDeviceCannotStart) {
  const auto usual = prepare_with({});
  PickyRuntime runtime({"host-loops"});
  const auto prepared = prepare(graph_, options_, {}, runtime);
  EXPECT_EQ(*prepared.algorithms, changed(*usual.algorithms, "forward"));
  const auto forward = static_cast<int>(prepared.passed_over.size());
  EXPECT_EQ(forward, std::ranges::count_if(*usual.algorithms,
                                           [](const auto& one) { return one.first.starts_with("forward"); }));
  EXPECT_EQ(runtime.runs, static_cast<int>(usual.algorithms->size()) + forward) << "each once";
  EXPECT_EQ(prepared.passed_over.front().why, "cannot be started: no");
  EXPECT_THAT(prepared.note, AllOf(HasSubstr(fmt::format("kernels: {} algorithms were passed over", forward)),
                                   HasSubstr("host-loops cannot be started: no (forward, f32, ")));
  // Another process, which can start them, follows.
  HostRuntime other;
  const auto alike = prepare(graph_, options_, {.passed_over = prepared.passed_over}, other);
  EXPECT_EQ(*alike.algorithms, *prepared.algorithms);
  EXPECT_EQ(alike.passed_over, prepared.passed_over);
  // What an earlier run used is tried, too.
  const auto given = prepare(graph_, options_, {.given = *usual.algorithms}, runtime);
  EXPECT_EQ(*given.algorithms, *prepared.algorithms);
  EXPECT_THAT(given.note, HasSubstr("host-loops cannot be started: no"));
}

TEST_F(CudaPrepare, MeasuresOnlyWhatTheDeviceStarts) {
  PickyRuntime runtime({"host-loops"});
  const auto prepared = prepare(graph_, options_, {.is_measured = true}, runtime);
  EXPECT_EQ(prepared.chosen_by, "measured");
  for (const auto& [problem, algorithm] : *prepared.algorithms)
    EXPECT_TRUE(algorithm == "host-loops-descending" || !problem.starts_with("forward")) << problem;
}

TEST_F(CudaPrepare, SaysWhatToDoIfNothingStarts) {
  PickyRuntime runtime({"host-loops", "host-loops-descending"});
  try {
    (void)prepare(graph_, options_, {}, runtime);
    FAIL() << "nothing can be started";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::device);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("no algorithm of cuDNN for forward, f32, "),
                                    HasSubstr("host-loops-descending cannot be started: no"),
                                    HasSubstr("install a newer driver")));
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

// Rows of problems that no graph has, such as those of convolutions with a batch norm's sums in older
// records.
TEST_F(CudaPrepare, RowsOfOtherProblemsAreIgnored) {
  const KernelAlgorithms rows = {
      {"forward, f32, 4x8x8x8 to 4x8x8x16, kernel 3x3, stride 1, padding 1, with statistics", "separate"},
      {"backward data, f32, 4x8x8x16 to 4x8x8x16, kernel 3x3, stride 1, padding 1, with mask and sums",
       "cudnn-9.14.0-engine-9(14=1)"}};
  const auto usual = prepare_with({});
  KernelAlgorithms given = *usual.algorithms;
  given.insert(rows.begin(), rows.end());
  const auto repeated = prepare_with({.given = given, .insists = true});
  EXPECT_EQ(*repeated.algorithms, *usual.algorithms);
  EXPECT_EQ(repeated.note, "");

  const auto measured = prepare_with({.is_measured = true});
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(cache_)) {
    auto table = kernel_table_from(base::read_file(entry.path()));
    if (!table) continue;  // the lock
    ++files;
    table->algorithms.insert(rows.begin(), rows.end());
    base::write_file(entry.path(), std::string_view(as_text(*table)));
  }
  ASSERT_EQ(files, 1);
  const auto again = prepare_with({.is_measured = true});
  EXPECT_EQ(*again.algorithms, *measured.algorithms);
  EXPECT_EQ(again.chosen_by, "measured");
  EXPECT_THAT(again.note, testing::Not(HasSubstr("measured in"))) << "the file was read";
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

TEST_F(CudaPrepare, TakesBf16WhereGpusHaveUnits) {
  for (const int capability : {80, 86, 90, 120})
    EXPECT_EQ(auto_precision(capability).precision, Precision::bf16) << capability;
  EXPECT_EQ(auto_precision(75).precision, Precision::f32);
  EXPECT_EQ(auto_precision(75).reason,
            "a GPU of compute capability 7.5 has no units for bf16, which begin with 8.0");
}

}  // namespace
}  // namespace paceline::engine::cuda

// How the algorithms of a run are chosen: by default, as given by an earlier run, or a sentence why not.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "engine/cpu/conv/default_table.h"
#include "engine/cpu/engine.h"
#include "graph/zoo.h"

namespace paceline::engine::cpu {
namespace {

using testing::HasSubstr;

class Prepare : public testing::Test {
 protected:
  const graph::Graph graph_ = graph::make_model("resnet8-cifar", {3, 32, 32}, 10, 0);
  const CompileOptions options_{.batch = 8};
  const PreparedKernels default_ = prepare(graph_, options_, {});

  PreparedKernels with(const KernelAlgorithms& given, bool insists = false) {
    return prepare(graph_, options_, {.given = given, .insists = insists});
  }
  /// Another way than the default's for one 3x3 convolution of 16 channels.
  KernelAlgorithms changed() {
    KernelAlgorithms algorithms = *default_.algorithms;
    for (auto& [problem, algorithm] : algorithms)
      if (problem.starts_with("conv2d forward from 16x32x32 to 16x32x32, kernel 3 stride 1"))
        algorithm = algorithm == "onednn" ? "winograd" : "onednn";
    EXPECT_NE(algorithms, *default_.algorithms);
    return algorithms;
  }
};

TEST_F(Prepare, ByDefaultSaysEveryProblemAndNothingToTheUser) {
  EXPECT_EQ(default_.chosen_by, default_choices_name());
  EXPECT_EQ(default_.note, "");
  EXPECT_GE(default_.algorithms->size(), 15u);
  EXPECT_EQ(*prepare(graph_, options_, {}).algorithms, *default_.algorithms);
}

TEST_F(Prepare, TakesWhatAnEarlierRunUsed) {
  const auto given = changed();
  const auto prepared = with(given);
  EXPECT_EQ(prepared.chosen_by, "given");
  EXPECT_EQ(*prepared.algorithms, given);
  EXPECT_EQ(prepared.note, "");
  CompileOptions options = options_;
  const auto count = [&](const std::shared_ptr<const KernelAlgorithms>& algorithms) {
    options.algorithms = algorithms;
    std::map<std::string, int> names;
    for (const auto& kernel : compile(graph_, options)->kernels()) ++names[kernel.implementation];
    return names;
  };
  EXPECT_NE(count(prepared.algorithms), count(default_.algorithms)) << "and the engine computes with them";
}

TEST_F(Prepare, SaysWhatTheEarlierRunKnewNothingOf) {
  auto given = changed();
  given.erase(given.begin());
  const auto prepared = with(given);
  EXPECT_THAT(prepared.note, HasSubstr("1 did not occur there"));
  EXPECT_EQ(prepared.algorithms->size(), default_.algorithms->size());
}

TEST_F(Prepare, SaysWhatCannotBeHadHereOrFailsWhereItMust) {
  auto given = *default_.algorithms;
  for (auto& [problem, algorithm] : given)
    if (problem.starts_with("dense forward")) algorithm = "gemm-per-tap";  // which is for convolutions
  const auto prepared = with(given);
  EXPECT_THAT(prepared.note, HasSubstr("gemm-per-tap is for convolutions"));
  EXPECT_EQ(*prepared.algorithms, *default_.algorithms);
  try {
    with(given, true);
    FAIL() << "--kernels-from insists";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("--kernels-from: dense forward"));
    EXPECT_THAT(error.what(), HasSubstr("leave the option out"));
  }
  given.begin()->second = "of-another-version";
  EXPECT_THAT(with(given).note, HasSubstr("of-another-version is not an algorithm of this version"));
}

}  // namespace
}  // namespace paceline::engine::cpu

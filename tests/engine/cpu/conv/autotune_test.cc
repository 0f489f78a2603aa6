// What algorithms are chosen by, and the choice by measuring.

#include "engine/cpu/conv/autotune.h"

#include <gtest/gtest.h>

#include <set>

#include "engine/cpu/engine.h"
#include "engine/cpu/parallel.h"
#include "graph/zoo.h"

namespace paceline::engine::cpu {
namespace {

ConvProblem square_problem(int channels, int pixels, int samples, Direction direction = Direction::forward) {
  return {.shape = {.samples = samples,
                    .src = {channels, pixels, pixels},
                    .dst = {channels, pixels, pixels},
                    .kernel = 3,
                    .padding = 1},
          .direction = direction};
}

TEST(ConvProblem, KeysTellApartWhatKernelsAreChosenFor) {
  std::set<std::string> keys;
  const auto add = [&](ConvProblem problem) {
    EXPECT_TRUE(keys.insert(key_of(problem)).second) << key_of(problem);
  };
  const ConvProblem plain = square_problem(64, 8, 4);
  add(plain);
  for (const auto direction : {Direction::backward_data, Direction::backward_weights})
    add(square_problem(64, 8, 4, direction));
  const auto changed = [&](auto change) {
    ConvProblem other = plain;
    change(other.shape);
    add(other);
  };
  changed([](ConvShape& s) { s.samples = 5; });
  changed([](ConvShape& s) { s.src.channels = 32; });
  changed([](ConvShape& s) { s.dst.height = 7; });
  changed([](ConvShape& s) { s.kernel = 1; });
  changed([](ConvShape& s) { s.stride = 2; });
  changed([](ConvShape& s) { s.padding = 0; });
  changed([](ConvShape& s) { s.bias = true; });
  changed([](ConvShape& s) { s.is_dense = true; });
  changed([](ConvShape& s) { s.training = false; });
  changed([](ConvShape& s) { s.in_blocks = true; });
  changed([](ConvShape& s) { s.type = Storage::bf16; });
  changed([](ConvShape& s) { s.dst_type = Storage::bf16; });
}

TEST(Autotune, TakesAnAlgorithmThatCanComputeTheProblem) {
  const OneThread one_thread;
  for (const auto direction : {Direction::forward, Direction::backward_data, Direction::backward_weights}) {
    for (const int samples : {1, 7, 33}) {
      for (ConvProblem p :
           {square_problem(16, 9, samples, direction), square_problem(3, 5, samples, direction),
            square_problem(128, 4, samples, direction)}) {
        const ConvAlgorithm* algorithm = autotune(p);
        EXPECT_EQ(algorithm->refusal(p), std::nullopt) << key_of(p);
        EXPECT_GT(seconds_of(p, *algorithm), 0) << key_of(p);
      }
    }
  }
}

const ConvAlgorithm* the_usual(const ConvProblem& problem) {
  return problem.shape.samples % 2 == 0 ? find_algorithm("onednn") : find_algorithm("gemm-per-tap");
}

TEST(Autotune, MeasuresSideBySideAndKeepsTheOrder) {
  std::vector<ConvProblem> problems;
  for (int samples = 1; samples <= 40; ++samples) problems.push_back(square_problem(8, 4, samples));
  const auto found = side_by_side(problems, the_usual);
  ASSERT_EQ(found.size(), problems.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], the_usual(problems[i])) << i;
  EXPECT_TRUE(side_by_side({}, the_usual).empty());
}

TEST(Autotune, WhatWasChosenIsTakenByTheEngine) {
  const OneThread one_thread;
  const auto graph = graph::make_model("resnet8-cifar", {3, 32, 32}, 10, 0);
  CompileOptions options{.batch = 8};
  const auto taps_among = [&] {
    int count = 0;
    for (const auto& kernel : compile(graph, options)->kernels())
      count += kernel.implementation.find("tap") != std::string::npos;
    return count;
  };
  EXPECT_EQ(taps_among(), 0);
  const graph::Shape inner{16, 32, 32};
  const ConvProblem second{.shape = {.samples = 8, .src = inner, .dst = inner, .kernel = 3, .padding = 1}};
  options.algorithms =
      std::make_shared<const KernelAlgorithms>(KernelAlgorithms{{key_of(second), "gemm-per-tap"}});
  EXPECT_GE(taps_among(), 1);
}

}  // namespace
}  // namespace paceline::engine::cpu

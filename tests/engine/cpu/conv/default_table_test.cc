// The default choice of algorithms: a function of shape and kind of processor, by the nearest measurement.

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>

#include "engine/cpu/conv/algorithms.h"
#include "engine/cpu/conv/default_table.h"
#include "engine/cpu/engine.h"
#include "engine/cpu/parallel.h"
#include "graph/zoo.h"

namespace paceline::engine::cpu {
namespace {

constexpr auto kForward = Direction::forward;
constexpr auto kF32 = Storage::f32;

ConvProblem conv_problem(int channels, int side, int samples, int stride = 1) {
  return {.shape = {.samples = samples,
                    .src = {channels, side * stride, side * stride},
                    .dst = {channels, side, side},
                    .kernel = 3,
                    .stride = stride,
                    .padding = 1}};
}

constexpr std::array kRows = {
    DefaultRow{kForward, false, false, kF32, 3, 1, 64, 64, 256, 32, "winograd"},
    DefaultRow{kForward, false, false, kF32, 3, 1, 512, 512, 16, 32, "gemm-per-tap"},
    DefaultRow{kForward, false, false, kF32, 3, 1, 3, 64, 1024, 32, "onednn"},
};

DefaultTable table_of(std::span<const DefaultRow> rows) {
  return {.name = "test",
          .vendor = "v",
          .units = "u",
          .family = 1,
          .model = 2,
          .is_for_other_vendors = false,
          .rows = rows};
}

std::string choice(const ConvProblem& problem) {
  const ConvAlgorithm* const found = nearest_choice(table_of(kRows), problem);
  return found == nullptr ? "none" : found->name;
}

TEST(DefaultTable, TakesTheNearestMeasurement) {
  EXPECT_EQ(choice(conv_problem(64, 16, 32)), "winograd");
  EXPECT_EQ(choice(conv_problem(64, 16, 7)), "winograd");
  EXPECT_EQ(choice(conv_problem(128, 16, 32)), "winograd");
  EXPECT_EQ(choice(conv_problem(512, 4, 32)), "gemm-per-tap");
  EXPECT_EQ(choice(conv_problem(384, 4, 64)), "gemm-per-tap");
}

TEST(DefaultTable, SaysNothingOfWhatIsFarOrOfAnotherKind) {
  EXPECT_EQ(choice(conv_problem(64, 16, 32, 2)), "none") << "another stride";
  EXPECT_EQ(choice(conv_problem(4, 2, 1)), "none") << "far";
  ConvProblem other = conv_problem(64, 16, 32);
  other.direction = Direction::backward_data;
  EXPECT_EQ(choice(other), "none");
  other = conv_problem(64, 16, 32);
  other.shape.type = Storage::bf16;
  EXPECT_EQ(choice(other), "none");
  other = conv_problem(64, 16, 32);
  other.shape.groups = 64;
  EXPECT_EQ(choice(other), "none") << "rows are for one group";
}

TEST(DefaultTable, PassesOverWhatCannotBeComputedOrIsUnknown) {
  ConvProblem with_bias = conv_problem(512, 4, 32);
  with_bias.shape.bias = true;  // products by tap add none
  EXPECT_NE(choice(with_bias), "gemm-per-tap");
  constexpr std::array kUnknown = {DefaultRow{kForward, false, false, kF32, 3, 1, 64, 64, 256, 32, "no-such"},
                                   kRows[0]};
  EXPECT_EQ(nearest_choice(table_of(kUnknown), conv_problem(64, 16, 32))->name, "winograd");
}

TEST(DefaultTable, IsThatOfTheKindThenOfTheFamilyThenOfTheVendorThenOfOthers) {
  const auto entry = [](std::string_view name, std::string_view vendor, int family, int model, bool others) {
    return DefaultTable{.name = name,
                        .vendor = vendor,
                        .units = "avx512-bf16",
                        .family = family,
                        .model = model,
                        .is_for_other_vendors = others,
                        .rows = {}};
  };
  const std::array tables = {entry("other", "B", 26, 9, true), entry("vendors", "A", 25, 1, false),
                             entry("familys", "A", 26, 1, false), entry("exact", "A", 26, 2, false)};
  const auto name_for = [&](const ProcessorKind& kind) {
    const DefaultTable* const found = table_for(kind, tables);
    return found == nullptr ? std::string("none") : std::string(found->name);
  };
  EXPECT_EQ(name_for({"A", 26, 2, "avx512-bf16"}), "exact");
  EXPECT_EQ(name_for({"A", 26, 5, "avx512-bf16"}), "familys");
  EXPECT_EQ(name_for({"A", 27, 5, "avx512-bf16"}), "vendors");
  EXPECT_EQ(name_for({"C", 6, 143, "avx512-bf16"}), "other");
  EXPECT_EQ(name_for({"A", 26, 2, "avx2"}), "none") << "other units";
  EXPECT_EQ(name_for({"C", 26, 2, "avx512-bf16"}), "other") << "numbers of another vendor mean nothing";
}

TEST(DefaultTable, OfTheProgramNamesAlgorithmsThatExist) {
  std::set<std::string_view> names;
  for (const DefaultTable& table : default_tables()) {
    EXPECT_TRUE(names.insert(table.name).second) << table.name;
    EXPECT_FALSE(table.rows.empty()) << table.name;
    for (const DefaultRow& row : table.rows) {
      EXPECT_NE(find_algorithm(row.algorithm), nullptr) << row.algorithm;
      EXPECT_GT(row.src_channels * row.dst_channels * row.dst_pixels * row.samples, 0);
    }
  }
}

TEST(DefaultTable, DistanceIsInPowersOfTwo) {
  EXPECT_EQ(distance(kRows[0], conv_problem(64, 16, 32)), 0);
  EXPECT_EQ(distance(kRows[0], conv_problem(128, 16, 32)), 2 * 256) << "both numbers of channels";
  EXPECT_EQ(distance(kRows[0], conv_problem(64, 32, 32)), 2 * 256);
  EXPECT_EQ(distance(kRows[0], conv_problem(64, 16, 128)), 256) << "samples count half";
  EXPECT_LT(distance(kRows[0], conv_problem(64, 16, 32, 2)), 0);
}

TEST(DefaultTable, TheDefaultCanComputeEveryProblem) {
  for (const int channels : {1, 3, 16, 64, 512})
    for (const int side : {1, 4, 7, 32})
      for (const int samples : {1, 7, 128})
        for (const int stride : {1, 2})
          for (const auto direction :
               {Direction::forward, Direction::backward_data, Direction::backward_weights}) {
            ConvProblem one = conv_problem(channels, side, samples, stride);
            one.direction = direction;
            const ConvAlgorithm& first = default_algorithm(one);
            EXPECT_EQ(first.refusal(one), std::nullopt) << key_of(one);
            EXPECT_EQ(&default_algorithm(one), &first);
          }
}

}  // namespace

// What algorithms are chosen by, and the choice by measuring.

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

// The default choice of algorithms: a function of shape and kind of processor, by the nearest measurement.

#include "engine/cpu/conv/default_table.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>

#include "engine/cpu/conv/algorithms.h"

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
}  // namespace paceline::engine::cpu

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "engine/update_rule.h"
#include "train/given/names.h"

namespace paceline::train {
namespace {

/// Every listed name is read back to itself and stands there once; what is none is nothing.
template <NamedChoice Choice>
void expect_inverse(const std::vector<std::string>& listed) {
  EXPECT_EQ(names_of<Choice>(), listed);
  EXPECT_EQ(std::set<std::string>(listed.begin(), listed.end()).size(), listed.size());
  for (const auto& one : listed) {
    const auto read = choice_named<Choice>(one);
    ASSERT_TRUE(read) << one;
    EXPECT_EQ(name(*read), one);
    EXPECT_FALSE(choice_named<Choice>(one + " ")) << one;
    EXPECT_FALSE(choice_named<Choice>(one.substr(1))) << one;
  }
  EXPECT_FALSE(choice_named<Choice>(""));
}

TEST(Names, OfChoicesAreReadBack) {
  expect_inverse<ScheduleKind>({"constant", "step", "cosine", "one-cycle", "plateau", "polynomial"});
  expect_inverse<TestSet>({"last", "every", "never"});
  expect_inverse<OnNan>({"stop", "rollback", "skip"});
  expect_inverse<engine::Precision>({"fp32", "bf16", "fp16"});
  expect_inverse<LrScaling>({"none", "linear", "sqrt"});
  expect_inverse<data::CropFill>({"black", "reflect"});
  expect_inverse<data::Flip>({"none", "random", "alternating"});
}

TEST(Names, OfOptimizersAreThoseOfTheEngine) {
  for (const auto& row : engine::update_rules()) EXPECT_EQ(name(row.usual.kind), row.name);
}

TEST(Names, OfBatchNormHoldTheSizeOfAGhostBatch) {
  EXPECT_EQ(name(engine::BatchNormMode::local, 0), "local");
  EXPECT_EQ(name(engine::BatchNormMode::synchronised, 0), "sync");
  EXPECT_EQ(name(engine::BatchNormMode::ghost, 16), "ghost:16");
}

}  // namespace
}  // namespace paceline::train

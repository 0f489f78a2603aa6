#include "analysis/trainings/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"

namespace paceline::analysis {
namespace {

using testing::HasSubstr;

TEST(Wilson, HasTheIntervalsOfTheFormulaAlsoAtTheEnds) {
  // 10 of 20, 0 of 10, 9 of 10: the roots of (p - x)^2 = z^2 x (1 - x) / n.
  EXPECT_NEAR(wilson(10, 20).low, 0.29930, 1e-5);
  EXPECT_NEAR(wilson(10, 20).high, 0.70070, 1e-5);
  EXPECT_EQ(wilson(0, 10).low, 0);
  EXPECT_NEAR(wilson(0, 10).high, 0.27753, 1e-5);
  EXPECT_NEAR(wilson(10, 10).low, 0.72247, 1e-5);
  EXPECT_EQ(wilson(10, 10).high, 1);
  EXPECT_NEAR(wilson(9, 10).low, 0.59585, 1e-5);
  EXPECT_NEAR(wilson(9, 10).high, 0.98212, 1e-5);
}

TEST(Wilson, CoversTheTrueProportionAboutAsOftenAsItSays) {
  base::Rng rng(1, base::Purpose::test);
  for (const double p : {0.5, 0.9, 0.98}) {
    int covered = 0;
    constexpr int kTrials = 2000, kSamples = 100;
    for (int trial = 0; trial < kTrials; ++trial) {
      int hits = 0;
      for (int i = 0; i < kSamples; ++i) hits += rng.next_u32() < p * 4294967296.0 ? 1 : 0;
      const auto interval = wilson(hits, kSamples);
      covered += interval.low <= p && p <= interval.high ? 1 : 0;
    }
    EXPECT_GT(covered, 0.92 * kTrials) << p;
  }
}

measure::EvaluationRecord three_classes() {
  return {.checkpoint = "c",
          .updates = 5,
          .part = "test",
          .samples = 20,
          .loss = 0.5,
          .correct = 13,
          .correct_in_5 = 20,
          .classes = {"cat", "dog", "cow"},
          .confusion = {{6, 4, 0}, {2, 7, 1}, {0, 0, 0}},
          .mistakes = {},
          .reads = 20};
}

TEST(Evaluation, GivesRecallPrecisionAndTheMostFrequentConfusions) {
  const auto record = three_classes();
  const auto result = evaluation(record);
  ASSERT_EQ(result.contradiction, "");
  EXPECT_DOUBLE_EQ(result.top_1.value, 13.0 / 20);
  EXPECT_DOUBLE_EQ(result.top_5.value, 1);
  ASSERT_EQ(result.classes.size(), 3u);
  EXPECT_DOUBLE_EQ(result.classes[0].recall.value().value, 0.6);
  EXPECT_DOUBLE_EQ(result.classes[0].precision.value().value, 6.0 / 8);
  EXPECT_DOUBLE_EQ(result.classes[1].precision.value().value, 7.0 / 11);
  EXPECT_FALSE(result.classes[2].recall.has_value());
  EXPECT_DOUBLE_EQ(result.classes[2].precision.value().value, 0);
  ASSERT_EQ(result.confusions.size(), 3u);
  EXPECT_EQ(result.confusions[0].label, 0u);
  EXPECT_EQ(result.confusions[0].predicted, 1u);
  EXPECT_EQ(result.confusions[0].samples, 4);
}

TEST(Evaluation, NamesCountsThatContradictEachOther) {
  auto record = three_classes();
  record.confusion[0][2] = 1;
  EXPECT_THAT(evaluation(record).contradiction, HasSubstr("sums to 21, and 20 images were evaluated"));
  record = three_classes();
  record.correct = 12;
  EXPECT_THAT(evaluation(record).contradiction, HasSubstr("has 13 correct images, and 12 were counted"));
  record = three_classes();
  record.correct_in_5 = 12;
  EXPECT_THAT(evaluation(record).contradiction, HasSubstr("within five"));
  record = three_classes();
  record.confusion.pop_back();
  EXPECT_THAT(evaluation(record).contradiction, HasSubstr("is not 3 x 3"));
  record = three_classes();
  record.samples = 0;
  EXPECT_THAT(evaluation(record).contradiction, HasSubstr("no image"));
}

}  // namespace
}  // namespace paceline::analysis

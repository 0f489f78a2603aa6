#include "analysis/trainings/course.h"

#include <gtest/gtest.h>

#include "golden/records.h"

namespace paceline::analysis {
namespace {

using measure::Record;

struct Epoch {
  double train_loss, test_loss, test_accuracy;
};

Record training(const std::vector<Epoch>& epochs, int seed = 0) {
  std::vector<double> accuracies;
  for (const Epoch& epoch : epochs) accuracies.push_back(epoch.test_accuracy);
  Record record = golden::make_training({.seed = seed, .accuracies = accuracies});
  for (std::size_t i = 0; i < epochs.size(); ++i) {
    record.epochs[i].train_loss = epochs[i].train_loss;
    record.epochs[i].test_loss = epochs[i].test_loss;
    record.epochs[i].train_accuracy = 1 - epochs[i].train_loss / 3;
  }
  return record;
}

Course course_of(const std::vector<Record>& records) {
  std::vector<const Record*> seeds;
  for (const Record& record : records) seeds.push_back(&record);
  return course(seeds);
}

const std::vector<Epoch> kOverfitted{{1.5, 1.6, 0.40},  {1.0, 1.1, 0.60},   {0.7, 0.90, 0.70},
                                     {0.5, 0.95, 0.71}, {0.3, 1.05, 0.715}, {0.2, 1.20, 0.71}};

TEST(Course, OverfitsFromTheEpochBehindTheLowestHeldOutLoss) {
  const auto result = course_of({training(kOverfitted)});
  ASSERT_TRUE(result.overfitting);
  EXPECT_DOUBLE_EQ(result.overfitting->from_epoch, 4);
  EXPECT_DOUBLE_EQ(result.overfitting->lowest_loss, 0.90);
  EXPECT_DOUBLE_EQ(result.overfitting->last_loss, 1.20);
  EXPECT_DOUBLE_EQ(result.overfitting->train_loss_then, 0.7);
  EXPECT_DOUBLE_EQ(result.overfitting->train_loss_at_end, 0.2);
  EXPECT_NEAR(*result.overfitting->accuracy_at_end - *result.overfitting->accuracy_then, 0.01, 1e-12);
  EXPECT_NEAR(*result.gap, (1 - 0.2 / 3) - 0.71, 1e-12);
}

TEST(Course, AValidationPartIsTheOneHeldOut) {
  Record record = training(kOverfitted);
  for (std::size_t i = 0; i < record.epochs.size(); ++i) {
    record.epochs[i].validation_loss = 2.0 - 0.1 * static_cast<double>(i);  // falls to the end
    record.epochs[i].validation_accuracy = 0.5;
  }
  const auto result = course_of({record});
  EXPECT_TRUE(result.has_validation);
  EXPECT_FALSE(result.overfitting);
  EXPECT_NEAR(*result.gap, (1 - 0.2 / 3) - 0.5, 1e-12);
  EXPECT_EQ(*result.unsteadiness, 0);
}

TEST(Course, ASingleBadEpochIsNoOverfitting) {
  auto epochs = kOverfitted;
  epochs[3].test_loss = 0.89, epochs[4].test_loss = 0.88, epochs[5].test_loss = 1.3;  // the last alone
  EXPECT_FALSE(course_of({training(epochs)}).overfitting);
  epochs[4].test_loss = 1.3, epochs[5].test_loss = 0.90;  // and back again, to within the 2 % of 0.89
  EXPECT_FALSE(course_of({training(epochs)}).overfitting);
}

TEST(Course, WithoutAFallingTrainingLossItIsNoOverfittingButWorse) {
  auto epochs = kOverfitted;
  for (std::size_t i = 3; i < epochs.size(); ++i) epochs[i].train_loss = 0.9;
  EXPECT_FALSE(course_of({training(epochs)}).overfitting);
}

TEST(Course, OfSeedsIsTheMeanOfEpochsThatAllHave) {
  auto longer = training(kOverfitted, 1), shorter = training({kOverfitted[0], kOverfitted[1]}, 0);
  for (auto& epoch : longer.epochs) epoch.train_loss += 0.2;
  const auto result = course_of({shorter, longer});
  ASSERT_EQ(result.epochs.size(), 2u);
  EXPECT_NEAR(result.epochs[0].train_loss, 1.6, 1e-12);
  shorter.epochs[1].test_loss.reset();
  EXPECT_FALSE(course_of({shorter, longer}).epochs[1].test_loss);
}

TEST(Course, IsAsSteadyAsItsLastChanges) {
  const auto result = course_of({training(
      {{1, 1, 0.1}, {1, 1, 0.5}, {1, 1, 0.6}, {1, 1, 0.58}, {1, 1, 0.61}, {1, 1, 0.6}, {1, 1, 0.62}})});
  EXPECT_EQ(result.steady_over, 5);
  EXPECT_NEAR(*result.unsteadiness, (0.10 + 0.02 + 0.03 + 0.01 + 0.02) / 5, 1e-12);
  EXPECT_FALSE(course_of({training({{1, 1, 0.1}, {1, 1, 0.5}})}).unsteadiness);  // one change says nothing
}

}  // namespace
}  // namespace paceline::analysis

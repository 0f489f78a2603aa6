#include <fmt/format.h>
#include <gtest/gtest.h>

#include "analysis/compare/cell.h"
#include "analysis/trainings/whole_trainings.h"
#include "golden/records.h"

namespace paceline::analysis {
namespace {

using measure::Record;

/// A training whose epochs take `epoch_s`.
Record training(int workers, const std::string& variant, double epoch_s,
                const std::vector<double>& accuracies, int seed = 0) {
  Record record =
      golden::make_training({.variant = variant,
                             .workers = workers,
                             .global_batch = 128 * workers,
                             .seed = seed,
                             .factor = variant.ends_with("scaling") ? static_cast<double>(workers) : 1,
                             .rule = variant.ends_with("scaling") ? "linear" : "none",
                             .accuracies = accuracies});
  for (auto& epoch : record.epochs) epoch.seconds = epoch_s;
  return record;
}

struct Made {
  std::vector<Record> records;
  std::vector<Cell> cells;
  std::optional<Convergence> convergence;
  std::optional<WholeTrainings> whole;
  explicit Made(std::vector<Record> given)
      : records(std::move(given)),
        cells(make_cells(records)),
        convergence(analysis::convergence(cells)),
        whole(convergence ? whole_trainings(*convergence) : std::nullopt) {}
};

TEST(WholeTrainings, GiveSpeedupsOfAnEpochOfTheWholeAndToOneAccuracy) {
  const Made made({training(1, "1 worker", 10, {0.50, 0.60, 0.70, 0.72}),
                   training(2, "2 workers, kept rate", 5.5, {0.40, 0.50, 0.60, 0.71}),
                   training(2, "2 workers, linear scaling", 5.0, {0.45, 0.60, 0.68, 0.715})});
  ASSERT_TRUE(made.whole);
  ASSERT_EQ(made.whole->trainings.size(), 3u);
  EXPECT_EQ(made.whole->baseline, 0u);
  EXPECT_NEAR(*made.whole->common_accuracy, 0.71, 1e-12);
  const auto& first = made.whole->trainings[0];
  EXPECT_FALSE(first.epoch_speedup);
  EXPECT_DOUBLE_EQ(first.total_s.median, 40);
  EXPECT_DOUBLE_EQ(first.to_accuracy_s.median, 40);  // 0.72 is its first at 0.71 or above
  const auto& linear = made.whole->trainings[2];
  EXPECT_DOUBLE_EQ(linear.epoch_speedup->median, 2);
  EXPECT_DOUBLE_EQ(linear.epoch_efficiency->median, 1);
  EXPECT_DOUBLE_EQ(linear.total_speedup->median, 2);
  EXPECT_DOUBLE_EQ(linear.to_accuracy_speedup->median, 2);
  EXPECT_NEAR(made.whole->trainings[1].total_efficiency->median, 40 / 22.0 / 2, 1e-12);
}

TEST(WholeTrainings, ATrainingThatEndsClearlyBelowNeverReachesTheAccuracy) {
  const Made made({training(1, "1 worker", 10, {0.60, 0.72}),
                   training(4, "4 workers, kept rate", 3, {0.20, 0.40}),
                   training(4, "4 workers, linear scaling", 3, {0.71, 0.709})});
  ASSERT_TRUE(made.whole);
  // Not 0.40. 0.709 is below 0.72 by 1.7 standard errors of the test set, so not clearly.
  EXPECT_NEAR(*made.whole->common_accuracy, 0.71, 1e-12);
  EXPECT_EQ(made.whole->trainings[1].to_accuracy_s.n, 0);
  EXPECT_FALSE(made.whole->trainings[1].to_accuracy_speedup);
  EXPECT_TRUE(made.whole->trainings[1].epoch_speedup);
  EXPECT_DOUBLE_EQ(made.whole->trainings[2].to_accuracy_s.median,
                   3);  // the first of its epochs, not the last
  EXPECT_NEAR(made.whole->trainings[2].to_accuracy_speedup->median, 20.0 / 3, 1e-12);
}

TEST(WholeTrainings, HaveIntervalsOverSeeds) {
  std::vector<Record> records;
  for (int seed = 0; seed < 3; ++seed) {
    records.push_back(training(1, "1 worker", 10 + seed, {0.5, 0.7}, seed));
    records.push_back(training(2, "2 workers, kept rate", 5, {0.5, 0.7}, seed));
  }
  const Made made(records);
  ASSERT_TRUE(made.whole);
  const auto& two = made.whole->trainings[1];
  EXPECT_DOUBLE_EQ(two.total_speedup->median, 2.2);
  EXPECT_LT(two.total_speedup->low, 2.2);
  EXPECT_GT(two.total_speedup->high, 2.2);
}

TEST(WholeTrainings, AreNoneOfOneNumberOfWorkers) {
  EXPECT_FALSE(
      Made({training(1, "baseline", 10, {0.5, 0.7}), training(1, "large batch", 5, {0.5, 0.6})}).whole);
}

// After a resume whose first part's record is gone the seconds of a part are not known.
TEST(WholeTrainings, AnUnknownPartHasNoTotal) {
  auto cut = training(2, "2 workers, kept rate", 5, {0.5, 0.7});
  cut.epochs[0].steps = 3;
  const Made made({training(1, "1 worker", 10, {0.5, 0.7}), cut});
  ASSERT_TRUE(made.whole);
  EXPECT_EQ(made.whole->trainings[1].total_s.n, 0);
  EXPECT_FALSE(made.whole->trainings[1].total_speedup);
  EXPECT_TRUE(made.whole->trainings[1].epoch_speedup);
}

// Who looks after every second epoch sees an accuracy of the first one only after the second.
TEST(WholeTrainings, KnowHowSeldomTheAccuracyWasLookedAt) {
  auto seldom = training(2, "2 workers, kept rate", 5, {0.7, 0.7, 0.7, 0.7, 0.7});
  for (const std::size_t unseen : {0u, 2u}) seldom.epochs[unseen].test_accuracy.reset();
  const Made made({training(1, "1 worker", 10, {0.7, 0.7, 0.7, 0.7, 0.7}), seldom});
  ASSERT_TRUE(made.whole);
  EXPECT_EQ(made.whole->trainings[0].looked_every, 1);
  EXPECT_EQ(made.whole->trainings[1].looked_every, 2);
  EXPECT_DOUBLE_EQ(made.whole->trainings[1].to_accuracy_s.median, 10);
}

// Four epochs are four times the work of one, whatever the workers.
TEST(WholeTrainings, HaveNoSpeedupInAllOfUnequalEpochs) {
  const Made made(
      {training(1, "1 worker", 10, {0.5, 0.6, 0.65, 0.7}), training(2, "2 workers, kept rate", 5, {0.7})});
  ASSERT_TRUE(made.whole);
  const auto& two = made.whole->trainings[1];
  EXPECT_FALSE(two.as_many_epochs);
  EXPECT_DOUBLE_EQ(two.total_s.median, 5);
  EXPECT_FALSE(two.total_speedup);
  EXPECT_FALSE(two.total_efficiency);
  EXPECT_DOUBLE_EQ(two.epoch_speedup->median, 2);
  EXPECT_DOUBLE_EQ(two.to_accuracy_speedup->median, 8);
}

TEST(WholeTrainings, HaveNoSpeedupWhereTimesMayNotBeCompared) {
  auto other = training(2, "2 workers, kept rate", 5, {0.5, 0.7});
  other.settings["loader-threads"] = "7";
  const Made made({training(1, "1 worker", 10, {0.5, 0.7}), other});
  ASSERT_TRUE(made.whole);
  const auto& two = made.whole->trainings[1];
  EXPECT_FALSE(two.times.comparable());
  EXPECT_FALSE(two.epoch_speedup);
  EXPECT_FALSE(two.total_speedup);
  EXPECT_FALSE(two.to_accuracy_speedup);
}

TEST(WholeTrainings, SayWhereCoresDidNotGrow) {
  auto one = training(1, "1 worker", 10, {0.5, 0.7}),
       two = training(2, "2 workers, kept rate", 10, {0.5, 0.7});
  one.threads_per_worker = 2, two.threads_per_worker = 1;
  const Made made({one, two});
  ASSERT_TRUE(made.whole);
  EXPECT_TRUE(made.whole->trainings[1].times.shares_cores);
  EXPECT_TRUE(made.whole->trainings[1].epoch_speedup);
}

// With a validation part the test set is read once, at the end.
TEST(WholeTrainings, HaveACommonAccuracyOnlyOfAPartThatIsReadByEpoch) {
  std::vector<Record> records{training(1, "1 worker", 10, {0.5, 0.7}),
                              training(2, "2 workers, kept rate", 5, {0.5, 0.7})};
  for (auto& record : records) {
    record.test_set.emplace();
    record.test_set->policy = "last";
    record.test_set->accuracy = 0.7;
    for (auto& epoch : record.epochs) epoch.test_accuracy.reset();
  }
  const Made without(records);
  ASSERT_TRUE(without.whole);
  EXPECT_FALSE(without.whole->common_accuracy);
  EXPECT_EQ(without.whole->trainings[1].to_accuracy_s.n, 0);
  for (auto& record : records)
    for (auto& epoch : record.epochs) epoch.validation_accuracy = 0.1 * static_cast<double>(4 + epoch.epoch);
  const Made with(records);
  EXPECT_NEAR(with.whole.value().common_accuracy.value(), 0.6, 1e-12);
  EXPECT_TRUE(with.whole->of_validation);
  EXPECT_DOUBLE_EQ(with.whole->trainings[1].to_accuracy_speedup.value().median, 2);
}

}  // namespace

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

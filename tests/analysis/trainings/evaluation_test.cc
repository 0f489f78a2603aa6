#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/trainings/evaluation.h"
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
  EXPECT_DOUBLE_EQ(result.balanced.value, (0.6 + 0.7) / 2) << "of the classes that have images";
  EXPECT_DOUBLE_EQ(result.classes[2].precision.value().value, 0);
  ASSERT_EQ(result.confusions.size(), 3u);
  EXPECT_EQ(result.confusions[0].label, 0u);
  EXPECT_EQ(result.confusions[0].predicted, 1u);
  EXPECT_EQ(result.confusions[0].samples, 4);
}

TEST(Evaluation, JoinsTheIntervalsOfAMean) {
  const auto few = wilson(3, 4), many = wilson(900, 1000);
  EXPECT_DOUBLE_EQ(mean_of_proportions(std::vector{many}).low, many.low) << "of one it is its own";
  EXPECT_DOUBLE_EQ(mean_of_proportions(std::vector{many}).high, many.high);
  const auto mean = mean_of_proportions(std::vector{few, many});
  EXPECT_DOUBLE_EQ(mean.value, (0.75 + 0.9) / 2);
  EXPECT_DOUBLE_EQ(mean.low, mean.value - std::hypot(few.value - few.low, many.value - many.low) / 2);
  EXPECT_DOUBLE_EQ(mean.high, mean.value + std::hypot(few.high - few.value, many.high - many.value) / 2);
  // Of many equal ones it becomes that of all their samples together: 100 times 50 of 100.
  const auto joined = mean_of_proportions(std::vector(100, wilson(50, 100))), whole = wilson(5'000, 10'000);
  EXPECT_NEAR(joined.low, whole.low, 3e-4);
  EXPECT_NEAR(joined.high, whole.high, 3e-4);
  EXPECT_EQ(mean_of_proportions(std::vector(3, wilson(7, 7))).high, 1);
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

namespace {

using measure::Record;

Record training(const std::string& name, int seed, const std::vector<double>& accuracies) {
  Record record;
  record.kind = "search";
  record.variant = name;
  record.id = name + std::to_string(seed) + std::to_string(accuracies.size());
  record.settings["seed"] = std::to_string(seed);
  record.data.validation_samples = 1000;
  for (const double accuracy : accuracies) {
    const auto number = static_cast<std::int64_t>(record.epochs.size()) + 1;
    measure::EpochRecord epoch{.epoch = number, .updates = 10 * number, .seconds = 2};
    epoch.validation_accuracy = accuracy;
    epoch.validation_loss = 1 - accuracy;
    record.epochs.push_back(epoch);
  }
  return record;
}

/// The only one.
std::optional<SearchResult> search(const std::vector<Record>& records) {
  auto found = searches(records);
  EXPECT_LE(found.size(), 1u);
  return found.empty() ? std::nullopt : std::optional(std::move(found.front()));
}

// Halving: b and c were dropped after one epoch, where a had 0.80; at its end it had 0.95.
TEST(Search, ComparesWhatWasDroppedAtEqualEpochs) {
  const std::vector<Record> records{training("a", 0, {0.80}), training("b", 0, {0.79}),
                                    training("c", 0, {0.5}), training("a", 0, {0.80, 0.95})};
  const auto result = search(records);
  ASSERT_TRUE(result.has_value());
  ASSERT_EQ(result->trials.size(), 3u);
  EXPECT_EQ(result->best, &records[3]);
  EXPECT_EQ(result->validation_samples, 1000);
  const auto& b = result->trials[1];
  EXPECT_EQ(b.candidate.name, "b");
  EXPECT_TRUE(b.dropped);
  EXPECT_NEAR(b.to_best.value().value, -0.01, 1e-12);
  EXPECT_TRUE(b.ties());  // one point of 1000 images, at a standard error of 1.8
  EXPECT_FALSE(result->trials[2].ties());
  EXPECT_NEAR(result->trials[0].standard_error, std::sqrt(0.95 * 0.05 / 1000), 1e-12);
  EXPECT_EQ(result->epochs_trained, 4);
  EXPECT_EQ(result->epochs_of_grid, 6);
  EXPECT_EQ(result->trials[0].training_s, 4);
  EXPECT_EQ(result->tested, nullptr);
}

TEST(Search, SaysWhatFailedAndWhatWasStopped) {
  std::vector<Record> records{training("a", 0, {0.8}), training("b", 0, {}), training("c", 0, {})};
  records[1].status = "failed";
  records[1].reason = "the loss is no longer finite";
  records[2].status = "interrupted";
  const auto result = search(records);
  ASSERT_EQ(result.value().trials.size(), 2u);
  EXPECT_TRUE(result->trials[1].has_failed());
  EXPECT_EQ(result->stopped, 1);
  records.erase(records.begin());
  EXPECT_EQ(search(records).value().best, nullptr);
  EXPECT_FALSE(search(std::vector<Record>{}).has_value());
  Record other;
  other.kind = "train";
  EXPECT_FALSE(search(std::vector<Record>{other}).has_value());
}

TEST(Search, HasTheGapOfTheBestEpoch) {
  std::vector<Record> records{training("a", 0, {0.8, 0.7}), training("a", 1, {0.9})};
  records[0].epochs[0].train_accuracy = 0.85;
  records[0].epochs[1].train_accuracy = 0.99;
  records[1].epochs[0].train_accuracy = 0.91;
  EXPECT_NEAR(search(records).value().trials[0].gap.value(), (0.05 + 0.01) / 2, 1e-12);
}

TEST(SearchGrid, HasBatchesByRatesInOrder) {
  const std::vector<Record> records{training("lr 0.1, local-batch 128, optimizer sgd", 0, {0.8}),
                                    training("lr 0.03, local-batch 128, optimizer sgd", 0, {0.7}),
                                    training("lr 0.1, local-batch 64, optimizer sgd", 0, {0.9}),
                                    training("lr 0.1, local-batch 64, optimizer lars", 0, {0.5})};
  const auto result = search(records).value();
  const auto found = grids(result);
  ASSERT_EQ(found.size(), 2u) << "one for each optimizer";
  const auto& grid = found[0].others == "optimizer sgd" ? found[0] : found[1];
  EXPECT_EQ(grid.row_option, "local-batch");
  EXPECT_EQ(grid.column_option, "lr");
  EXPECT_EQ(grid.rows, (std::vector<std::string>{"64", "128"}));
  EXPECT_EQ(grid.columns, (std::vector<std::string>{"0.03", "0.1"}));
  EXPECT_EQ(grid.trials[0], nullptr) << "64 with 0.03 was not searched";
  EXPECT_EQ(grid.trials[1]->candidate.accuracy, 0.9);
  EXPECT_EQ(grid.trials[2]->candidate.accuracy, 0.7);
  EXPECT_TRUE(grids(search({training("lr 0.1", 0, {0.8}), training("lr 0.3", 0, {0.7})}).value()).empty());
}

TEST(Search, FindsTheEvaluationOfTheChosenOne) {
  std::vector<Record> records{training("a", 0, {0.8})};
  Record tested;
  tested.kind = "evaluate";
  tested.variant = "a";
  tested.evaluation.emplace();
  records.push_back(tested);
  EXPECT_EQ(search(records).value().tested, &records[1]);
}

TEST(Search, IsOneForEachModelAndDataSet) {
  std::vector<Record> records{training("lr 0.1", 0, {0.8}), training("lr 0.1", 0, {0.9}),
                              training("lr 0.1", 0, {0.7})};
  records[0].model.name = records[2].model.name = "mnist-cnn";
  records[1].model.name = "resnet8-cifar";
  records[0].data.name = records[1].data.name = "mnist";
  records[2].data.name = "cifar10";
  const auto found = searches(records);
  ASSERT_EQ(found.size(), 3u);
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].best, &records[i]);
  EXPECT_EQ(found[1].subject, "resnet8-cifar on mnist");
}

TEST(Search, ThatVariesTheModelIsOne) {
  std::vector<Record> records{training("model mnist-cnn, lr 0.1", 0, {0.8}),
                              training("model resnet18, lr 0.1", 0, {0.9})};
  records[0].model.name = "mnist-cnn";
  records[1].model.name = "resnet18";
  const auto found = searches(records);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].best, &records[1]);
}

}  // namespace
}  // namespace paceline::analysis

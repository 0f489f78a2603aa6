#include "measure/ranking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::measure {
namespace {

/// A training whose validation accuracies are `accuracies`, epoch by epoch; losses fall with them.
Record training(const std::string& name, int seed, const std::vector<double>& accuracies) {
  Record record;
  record.kind = "search";
  record.variant = name;
  record.settings["seed"] = std::to_string(seed);
  for (const double accuracy : accuracies) {
    const auto number = static_cast<std::int64_t>(record.epochs.size()) + 1;
    EpochRecord epoch{.epoch = number, .updates = 10 * number};
    epoch.validation_accuracy = accuracy;
    epoch.validation_loss = 1 - accuracy;
    record.epochs.push_back(epoch);
  }
  return record;
}

std::vector<Candidate> ranked(const std::vector<Record>& records) {
  std::vector<const Record*> pointers;
  for (const auto& record : records) pointers.push_back(&record);
  auto result = candidates(pointers);
  rank(result);
  return result;
}

std::vector<std::string> names(const std::vector<Candidate>& candidates) {
  std::vector<std::string> result;
  for (const auto& one : candidates) result.push_back(one.name);
  return result;
}

TEST(Ranking, TheFigureIsTheBestEpochsAndOfEqualsThatOfTheLowerLossThenTheFirst) {
  Record record = training("a", 0, {0.5, 0.8, 0.7, 0.8, 0.8});
  record.epochs[3].validation_loss = 0.1;
  record.epochs[4].validation_loss = 0.1;
  EXPECT_EQ(best_validated(record).value().epoch, 4);
  EXPECT_EQ(best_validated(record, 3).value().epoch, 2);
  EXPECT_EQ(best_validated(record, 1).value().updates, 10);
  EXPECT_FALSE(best_validated(record, 0).has_value());
  EXPECT_FALSE(best_validated(Record()).has_value());
}

TEST(Ranking, GoesByMeansOverSeeds) {
  const std::vector<Record> records{training("a", 0, {0.9}), training("b", 0, {0.8}), training("a", 1, {0.6}),
                                    training("b", 1, {0.8})};
  const auto result = ranked(records);
  EXPECT_THAT(names(result), testing::ElementsAre("b", "a"));
  EXPECT_DOUBLE_EQ(result[1].accuracy, 0.75);
  EXPECT_THAT(result[1].accuracies, testing::ElementsAre(0.9, 0.6));
  EXPECT_EQ(&best_record(result[1]), &records[0]);
}

// A rung's record and the longer one that went on from it are one training.
TEST(Ranking, TakesTheLongestRecordOfASeedAndPutsWhatWasKeptForLongerFirst) {
  const std::vector<Record> records{training("a", 0, {0.9}), training("b", 0, {0.5}),
                                    training("b", 0, {0.5, 0.7})};
  const auto result = ranked(records);
  EXPECT_THAT(names(result), testing::ElementsAre("b", "a"));
  EXPECT_EQ(result[0].records.size(), 1u);
  EXPECT_DOUBLE_EQ(result[0].accuracy, 0.7);
}

TEST(Ranking, OneThatStoppedEarlyCameToItsEnd) {
  std::vector<Record> records{training("a", 0, {0.5, 0.6, 0.6, 0.6}), training("b", 0, {0.8, 0.7})};
  EXPECT_THAT(names(ranked(records)), testing::ElementsAre("a", "b"));
  records[1].chosen = {.epoch = 1, .updates = 10, .stopped_early = true};
  EXPECT_THAT(names(ranked(records)), testing::ElementsAre("b", "a"));
  std::vector<Record> worse{training("a", 0, {0.5, 0.6, 0.6, 0.6}), training("b", 0, {0.2, 0.1})};
  worse[1].chosen = {.epoch = 1, .updates = 10, .stopped_early = true};
  EXPECT_THAT(names(ranked(worse)), testing::ElementsAre("a", "b")) << "to have stopped is no merit";
}

// The mean over the seeds that did not fail would flatter it.
TEST(Ranking, WhatFailedWithOneSeedStandsBehindAllOthers) {
  std::vector<Record> records{training("a", 0, {0.9}), training("a", 1, {}), training("b", 0, {0.2})};
  records[1].status = "failed";
  records[1].reason = "the loss is no longer finite";
  const auto result = ranked(records);
  EXPECT_THAT(names(result), testing::ElementsAre("b", "a"));
  EXPECT_EQ(result[1].failure, "the loss is no longer finite");
}

}  // namespace
}  // namespace paceline::measure

#include "analysis/trainings/reference_curve.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "golden/records.h"

namespace paceline::analysis {
namespace {

using measure::Record;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr double kAccuracy = 0.9;

/// A training of ten epochs that is seen to reach 90 % after `reached` of them; 0: never.
Record reached_training(std::int64_t batch, int seed, int reached, double lr = 0.1) {
  constexpr int kEpochs = 10;
  std::vector<double> accuracies;
  for (int epoch = 1; epoch <= kEpochs; ++epoch)
    accuracies.push_back(reached > 0 && epoch >= reached ? 0.91 : 0.5);
  auto record = golden::make_training(
      {.variant = "", .global_batch = batch, .seed = seed, .lr = lr, .accuracies = accuracies});
  record.id += fmt::format("-b{}", batch);
  return record;
}

/// One for each of `reached`, with seeds from `first` on.
std::vector<Record> reached_trainings(std::int64_t batch, const std::vector<int>& reached, int first = 0) {
  std::vector<Record> all;
  for (const int epoch : reached) all.push_back(reached_training(batch, first++, epoch));
  return all;
}

std::vector<Record> joined(std::vector<std::vector<Record>> lists) {
  std::vector<Record> all;
  for (auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

AccuracyTarget usual_target() { return {.accuracy = kAccuracy, .of_validation = false}; }

RunsToAccuracy runs_of(const std::vector<Record>& records) {
  return runs_to_accuracy(records, usual_target());
}

ReferenceCurve reference_of(const std::vector<Record>& records) {
  return reference_curve(runs_of(records), "test");
}

/// The message of the error that `act` throws; "" if it throws none.
std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::data);
    return error.what();
  }
  return "";
}

// A mean of ten runs with 4 and 6, and of six with 8 and 10, at the quarter between the batches: 5 + (9 - 5)
// / 4. Variances of the means: 1 / 10 * 10/9, and 1 / 6 * 6/5; of the runs (6, 7, 8) 1 / 3. By Welch and
// Satterthwaite with shares of 9/16 and 1/16 of the first two.
TEST(ReferenceCurve, JudgesBetweenBatchesByHand) {
  const auto curve = reference_of(joined({reached_trainings(100, {4, 4, 4, 4, 4, 6, 6, 6, 6, 6}),
                                          reached_trainings(200, {8, 8, 8, 10, 10, 10})}));
  const auto records = reached_trainings(125, {6, 7, 8});
  const auto checks = check_against(curve, runs_of(records));
  ASSERT_EQ(checks.size(), 1u);
  const auto& check = checks[0];
  EXPECT_EQ(check.below, 100);
  EXPECT_EQ(check.above, 200);
  EXPECT_EQ(check.reference_runs, 6);
  EXPECT_DOUBLE_EQ(check.epochs, 7);
  EXPECT_DOUBLE_EQ(check.reference, 6);
  const double own = 1.0 / 3, first = 9.0 / 16 / 9, second = 1.0 / 16 / 5;
  const double variance = own + first + second;
  const double degrees = variance * variance / (own * own / 2 + first * first / 9 + second * second / 5);
  EXPECT_NEAR(degrees, 2.976, 0.001);
  EXPECT_NEAR(check.high - check.low, 2 * 2.361 * std::sqrt(variance), 0.02);  // t(0.95, 2.976)
  EXPECT_NEAR((check.high + check.low) / 2, 1, 1e-12);
  EXPECT_EQ(check.verdict, ReferenceVerdict::as_reference);
}

TEST(ReferenceCurve, FindsSlowerAndTooFastTrainings) {
  const auto curve = reference_of(reached_trainings(128, {5, 6, 5, 6, 5, 6, 5, 6, 5, 6}));
  const auto verdict = [&](const std::vector<int>& reached) {
    const auto records = reached_trainings(128, reached, 20);
    return check_against(curve, runs_of(records))[0].verdict;
  };
  EXPECT_EQ(verdict({6, 5, 6, 5, 5}), ReferenceVerdict::as_reference);
  EXPECT_EQ(verdict({7, 8, 7, 8, 8}), ReferenceVerdict::slower);
  EXPECT_EQ(verdict({3, 4, 3, 3, 4}), ReferenceVerdict::faster);
}

/// How often 1 of `checks` is called slower and faster: runs whose mean is `factor` times the reference's
/// line of 4 + batch / 100 epochs, with a spread of `spread` of it, seen at the next of `every` epochs.
struct Simulated {
  double factor = 1, spread = 0.05, every = 0.001;
  int runs = 5;
  std::vector<std::int64_t> batches{100};
};

struct Alarms {
  double slower = 0, faster = 0;
};

Alarms alarms_of(const Simulated& simulated, int checks) {
  const Record record = reached_training(100, 0, 1);
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  const auto draw = [&](std::int64_t batch, double factor, int runs) {
    std::vector<double> epochs;
    const double mean = factor * (4 + static_cast<double>(batch) / 100);
    for (int run = 0; run < runs; ++run)
      epochs.push_back(simulated.every *
                       std::ceil(mean * (1 + simulated.spread * normal(random)) / simulated.every));
    return epochs;
  };
  int slower = 0, faster = 0;
  for (int i = 0; i < checks; ++i) {
    ReferenceCurve curve{.target = usual_target(), .points = {}};
    for (const std::int64_t batch : {100, 200, 400}) {
      auto& point = curve.points.emplace_back();
      point.benchmark = mlperf_benchmark(record);
      point.batch = batch;
      point.epochs = draw(batch, 1, 2 * simulated.runs);
    }
    RunsToAccuracy runs{.target = usual_target(), .batches = {}, .not_used = {}};
    for (const std::int64_t batch : simulated.batches) {
      auto& one = runs.batches.emplace_back();
      one.batch = batch;
      one.record = &record;
      one.epochs = draw(batch, simulated.factor, simulated.runs);
      one.evaluated_every = simulated.every;
    }
    const auto found = check_against(curve, runs);
    const auto has = [&](ReferenceVerdict verdict) {
      return std::ranges::any_of(found, [&](const auto& check) { return check.verdict == verdict; });
    };
    slower += has(ReferenceVerdict::slower) ? 1 : 0;
    faster += has(ReferenceVerdict::faster) ? 1 : 0;
  }
  return {.slower = 1.0 * slower / checks, .faster = 1.0 * faster / checks};
}

// Of 3,000 checks a rate of 5 % is counted with a standard error of 0.4 points; the bounds are four of them.
TEST(ReferenceCurve, GivesFalseAlarmsAtTheStatedRate) {
  constexpr int kChecks = 3000;
  constexpr double kBound = 0.016;
  for (const auto& sound : std::vector<Simulated>{
           {}, {.runs = 3}, {.batches = {150}}, {.runs = 3, .batches = {100, 150, 200, 300}}}) {
    const auto alarms = alarms_of(sound, kChecks);
    const auto name = fmt::format("{} runs, {} batches", sound.runs, sound.batches.size());
    EXPECT_NEAR(alarms.slower, kFalseAlarms, kBound) << name;
    EXPECT_NEAR(alarms.faster, kFalseAlarms, kBound) << name;
  }
  // Rounded to whole epochs the runs vary by less or by more than they do; the rate must not be higher.
  for (const double spread : {0.005, 0.02, 0.1}) {
    const auto alarms = alarms_of({.spread = spread, .every = 1}, kChecks);
    EXPECT_LT(alarms.slower, kFalseAlarms + kBound) << spread;
    EXPECT_LT(alarms.faster, kFalseAlarms + kBound) << spread;
  }
}

TEST(ReferenceCurve, MissesFewTrainingsThatAreOff) {
  constexpr int kChecks = 500;
  EXPECT_GT(alarms_of({.factor = 1.15}, kChecks).slower, 0.95);
  EXPECT_GT(alarms_of({.factor = 0.85}, kChecks).faster, 0.95);
  EXPECT_EQ(alarms_of({.factor = 1.15}, kChecks).faster, 0);
}

// All ten of the reference were seen at the same evaluation, which shows no more than that.
TEST(ReferenceCurve, RoundingIsNoCertainty) {
  const auto curve = reference_of(reached_trainings(128, std::vector<int>(10, 2)));
  EXPECT_EQ(check_against(curve, runs_of(reached_trainings(128, {2, 2, 2}, 20)))[0].verdict,
            ReferenceVerdict::as_reference);
  EXPECT_EQ(check_against(curve, runs_of(reached_trainings(128, {2, 2, 3}, 20)))[0].verdict,
            ReferenceVerdict::as_reference);
  EXPECT_EQ(check_against(curve, runs_of(reached_trainings(128, {3, 3, 3, 3, 3}, 20)))[0].verdict,
            ReferenceVerdict::slower);
}

TEST(ReferenceCurve, SaysWhyNothingIsDecided) {
  const auto curve = reference_of(joined(
      {reached_trainings(128, {5, 6, 5, 6, 5, 6}), reached_trainings(256, {7, 6, 7, 6, 7, 6, 7, 6, 7, 6})}));
  auto seldom = reached_trainings(256, {6, 6, 7}, 20);
  for (auto& record : seldom)
    for (std::size_t i = 0; i < record.epochs.size(); i += 2) record.epochs[i].test_accuracy.reset();
  struct Case {
    std::vector<Record> records;
    const char* why;
  };
  for (const auto& [records, why] : std::vector<Case>{
           {reached_trainings(128, {5, 6}, 20), "2 runs at batch 128: a check needs at least 3"},
           {reached_trainings(64, {5, 6, 5}, 20), "batches from 128 to 256, and nothing is guessed beyond"},
           {reached_trainings(512, {5, 6, 5}, 20), "batches from 128 to 256, and nothing is guessed beyond"},
           {reached_trainings(160, {5, 6, 5, 6}, 20),
            "6 runs at batch 128, and a check of 4 needs 8 there: check 3"},
           {seldom, "looked at every 2 epochs, and every 1 for the reference"},
           {reached_trainings(256, {6, 7, 0}, 20), "1 of 3 runs did not reach the accuracy: train-"}}) {
    const auto checks = check_against(curve, runs_of(records));
    ASSERT_EQ(checks.size(), 1u) << why;
    EXPECT_EQ(checks[0].verdict, ReferenceVerdict::not_decided) << why;
    EXPECT_THAT(checks[0].not_decided, HasSubstr(why));
  }
}

// Ten epochs without the accuracy are eleven at least, which is slower than five or six; two of a diverged
// training say nothing of how many it needs, but not fewer than the reference.
TEST(ReferenceCurve, UnreachedRunsAreNeverFaster) {
  const auto curve = reference_of(reached_trainings(128, {5, 6, 5, 6, 5, 6}));
  const auto never = check_against(curve, runs_of(reached_trainings(128, {0, 0, 0}, 20)))[0];
  EXPECT_EQ(never.verdict, ReferenceVerdict::slower);
  EXPECT_DOUBLE_EQ(never.epochs, 11);
  auto records = reached_trainings(128, {1, 1, 0}, 20);
  records[2].epochs.resize(2);
  records[2].status = "failed";
  records[2].reason = "the loss is not finite";
  const auto failed = check_against(curve, runs_of(records))[0];
  EXPECT_EQ(failed.verdict, ReferenceVerdict::not_decided);
  EXPECT_DOUBLE_EQ(failed.epochs, (1 + 1 + 6) / 3.0);
  EXPECT_THAT(failed.not_decided, HasSubstr("failed after 2 epochs"));
}

TEST(ReferenceCurve, NamesWhatExplainsATooFastTraining) {
  auto records = reached_trainings(128, {5, 6, 5, 6, 5, 6});
  const auto curve = reference_of(records);
  records = reached_trainings(128, {2, 3, 2}, 20);
  for (auto& record : records) {
    record.data.lists_sha256 = std::map<std::string, std::string>{{"train", "abc"}, {"test", "abc"}};
    record.data.test_samples = 2000;
    record.settings["augment"] = "false";
  }
  const auto check = check_against(curve, runs_of(records))[0];
  EXPECT_EQ(check.verdict, ReferenceVerdict::faster);
  EXPECT_THAT(check.remarks,
              ElementsAre("it has 2000 images to test, the reference 10000",
                          "its test set holds the very images that it was trained with",
                          "it was not trained as the reference: augment false (there not given)"));
}

// A batch between two has a rate of its own, as one of the reference's may.
TEST(ReferenceCurve, TunedBatchesMayHaveTheirRates) {
  auto large = reached_trainings(256, {7, 7, 7, 8, 7, 8});
  for (auto& record : large) record.settings["lr"] = "0.2";
  const auto curve = reference_of(joined({reached_trainings(128, {5, 6, 5, 6, 5, 6}), large}));
  auto between = reached_trainings(160, {6, 6, 7}, 20);
  for (auto& record : between) record.settings["lr"] = "0.15";
  EXPECT_THAT(check_against(curve, runs_of(between))[0].remarks, IsEmpty());
  for (auto& record : large) record.settings["lr"] = "0.4";
  large.resize(3);
  EXPECT_THAT(check_against(curve, runs_of(large))[0].remarks,
              ElementsAre("it was not trained as the reference: lr 0.4 (there 0.2)"));
}

TEST(ReferenceCurve, ASeedCountsOnce) {
  const auto runs = runs_of(joined({reached_trainings(128, {5, 6, 5}), reached_trainings(128, {6}, 1)}));
  ASSERT_EQ(runs.batches.size(), 1u);
  EXPECT_THAT(runs.batches[0].epochs, ElementsAre(5, 6, 5));
  ASSERT_EQ(runs.not_used.size(), 1u);
  EXPECT_THAT(runs.not_used[0], HasSubstr("seed 1 at batch 128 counts once"));
}

TEST(ReferenceCurve, TakesValidationWhereTestsAreLast) {
  auto records = reached_trainings(128, {5, 6, 5});
  for (auto& record : records)
    for (auto& epoch : record.epochs) {
      epoch.validation_accuracy = epoch.test_accuracy;
      if (&epoch != &record.epochs.back()) epoch.test_accuracy.reset();
    }
  const auto runs = runs_to_accuracy(records, {.accuracy = kAccuracy, .of_validation = {}});
  EXPECT_TRUE(*runs.target.of_validation);
  EXPECT_THAT(runs.batches[0].epochs, ElementsAre(5, 6, 5));
}

TEST(ReferenceCurve, RefusesWhatIsNoReference) {
  const auto sound = reached_trainings(128, {5, 6, 5, 6, 5, 6});
  EXPECT_THAT(message_of([] {
                (void)reference_of(reached_trainings(128, {5, 6, 5}));
              }),
              HasSubstr("batch 128 has 3 runs, and a reference needs at least 6"));
  EXPECT_THAT(message_of([] {
                (void)reference_of(reached_trainings(128, {5, 6, 5, 6, 5, 0}));
              }),
              HasSubstr("1 of 6 runs at batch 128 did not reach the accuracy 0.9"));
  EXPECT_THAT(message_of([&] {
                (void)runs_of(joined({sound, {reached_training(128, 9, 5, 0.4)}}));
              }),
              HasSubstr("were not trained alike: lr 0.4 (there 0.1)"));
  auto other = reached_training(64, 9, 5);
  other.model.name = "vgg11";
  EXPECT_THAT(message_of([&] {
                (void)runs_of(joined({sound, {other}}));
              }),
              HasSubstr("trains vgg11 on cifar10; give the records of one of them"));
  EXPECT_THAT(message_of([&] { (void)check_against(reference_of(sound), runs_of({other})); }),
              HasSubstr("the reference is of resnet18-cifar on cifar10"));
  EXPECT_THAT(message_of([] { (void)runs_of({golden::make_record({})}); }),
              HasSubstr("none of the 1 record is a training whose epochs have an accuracy on the test set"));
}

// --evaluate-steps: a run that ends inside an epoch did not take all of it.
TEST(ReferenceCurve, CountsEvaluationsInsideEpochs) {
  auto record = reached_training(128, 0, 3);
  const auto each = record.data.steps_per_epoch;
  ASSERT_GT(each, 20);
  record.evaluations.emplace();
  for (const std::int64_t update : {each / 2, each, each + each / 2, 2 * each})
    record.evaluations->push_back({.update = update, .accuracy = update < 2 * each - 1 ? 0.5 : 0.92});
  const auto runs = runs_of({record});
  ASSERT_EQ(runs.batches.size(), 1U);
  EXPECT_THAT(runs.batches[0].epochs, ElementsAre(2.0));
  EXPECT_NEAR(runs.batches[0].evaluated_every, 0.5, 0.05);
}

}  // namespace
}  // namespace paceline::analysis

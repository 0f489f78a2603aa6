#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "golden/records.h"
#include "report/build.h"
#include "report/study_records.h"

namespace paceline::report {
namespace {

using golden::make_record;
using golden::make_training;
using measure::Record;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Record by_workers(int workers, double epoch_s, std::vector<double> accuracies) {
  auto record =
      make_training({.variant = workers == 1 ? "1 worker" : std::to_string(workers) + " workers, kept rate",
                     .workers = workers,
                     .global_batch = 128 * workers,
                     .accuracies = std::move(accuracies)});
  for (auto& epoch : record.epochs) epoch.seconds = epoch_s;
  return record;
}

TEST(WholeTrainings, HaveATableWhereNothingWasScaled) {
  const std::string text =
      text_of({by_workers(1, 10, {0.50, 0.70, 0.72}), by_workers(2, 6, {0.45, 0.68, 0.71})});
  EXPECT_THAT(text, HasSubstr("The common test accuracy is 71.0 %."));
  const auto document =
      build(std::vector<Record>{by_workers(1, 10, {0.5, 0.7}), by_workers(2, 6, {0.5, 0.7})});
  const auto* table = find<Table>(document, "converge-workers");
  ASSERT_NE(table, nullptr);
  ASSERT_EQ(table->rows.size(), 2u);
  for (const auto& row : table->rows) EXPECT_EQ(row.size(), table->columns.size());
  EXPECT_NE(to_csv(*table).find("total_speedup"), std::string::npos);
}

TEST(WholeTrainings, SayThatAnAccuracyLookedAtMoreSeldomIsSeenLater) {
  auto seldom = by_workers(2, 6, {0.7, 0.7, 0.71, 0.71});
  seldom.epochs[0].test_accuracy.reset();
  const auto often = by_workers(1, 10, {0.7, 0.7, 0.71, 0.71});
  const char* const said =
      "its accuracy was evaluated every 2 epochs, the baseline's after every epoch: therefore its time to the common "
      "accuracy can only be later, and the speedup to it smaller.";
  EXPECT_THAT(text_of({often, seldom}), HasSubstr(said));
  EXPECT_THAT(text_of({often, by_workers(2, 6, {0.7, 0.7, 0.71, 0.71})}), Not(HasSubstr("was evaluated")));
  auto baseline = often;
  baseline.epochs[0].test_accuracy.reset();
  EXPECT_THAT(text_of({baseline, by_workers(2, 6, {0.7, 0.7, 0.71, 0.71})}),
              HasSubstr("the baseline's time to the common accuracy can only be later, and the speedup to "
                        "it larger."));
}

TEST(Courses, ShowTrainingBesideHeldOutFigures) {
  auto records = std::vector<Record>{
      make_training({.accuracies = {0.5, 0.6, 0.65}}),
      make_training(
          {.variant = "large batch", .workers = 2, .global_batch = 2048, .accuracies = {0.3, 0.4, 0.5}})};
  auto document = build(records);
  const auto* table = find<Table>(document, "converge-course");
  ASSERT_NE(table, nullptr);
  const auto has = [](const Table& of, const std::string& key) {
    return std::any_of(of.columns.begin(), of.columns.end(),
                       [&](const Column& column) { return column.key == key; });
  };
  EXPECT_TRUE(has(*table, "train_loss") && has(*table, "train_accuracy") && has(*table, "gap"));
  EXPECT_FALSE(has(*table, "validation_loss"));
  EXPECT_NEAR(*table->rows[0][1].value, 2.3 * 0.35 + 0.1, 1e-12);
  for (const char* id : {"converge-train-loss", "converge-train-accuracy", "converge-test-loss"}) {
    const auto* plot = find<Plot>(document, id);
    ASSERT_NE(plot, nullptr) << id;
    EXPECT_EQ(plot->series.size(), 2u) << id;
    EXPECT_EQ(plot->series[0].points.size(), 3u) << id;
  }
  EXPECT_EQ(find<Plot>(document, "converge-validation-loss"), nullptr);

  for (auto& record : records)
    for (auto& epoch : record.epochs) epoch.validation_loss = 1.5, epoch.validation_accuracy = 0.4;
  document = build(records);
  table = find<Table>(document, "converge-course");
  EXPECT_TRUE(has(*table, "validation_loss") && has(*table, "validation_accuracy"));
  for (const auto& row : table->rows) EXPECT_EQ(row.size(), table->columns.size());
  EXPECT_NE(find<Plot>(document, "converge-validation-loss"), nullptr);
  EXPECT_NE(find<Plot>(document, "converge-validation-accuracy"), nullptr);
}

TEST(Courses, SayFromWhichEpochOnATrainingOverfits) {
  auto record = make_training({.variant = "", .accuracies = {0.5, 0.6, 0.65, 0.66, 0.66}});
  const double test[] = {1.4, 1.0, 1.1, 1.2, 1.3};
  for (std::size_t i = 0; i < 5; ++i) record.epochs[i].test_loss = test[i];
  const std::string text = text_of({record});
  EXPECT_THAT(
      text,
      HasSubstr("The training overfits from epoch 3: the test loss rises from 1.000 to 1.300 while the "
                "training loss goes on falling, from 1.020 to 0.882. Its test accuracy still rose, by 6.0 "
                "points"));
  EXPECT_THAT(text, HasSubstr("its test accuracy changed by 4.0 points (mean of the last 4)"));
  auto of_study = record;
  of_study.kind = "converge";
  of_study.variant = "baseline";
  EXPECT_THAT(text_of({of_study}), HasSubstr("baseline overfits from epoch 3"));
}

TEST(Courses, ValidationLossIsAColumnOfATraining) {
  auto record = make_training({.variant = "", .accuracies = {0.5, 0.6}});
  for (auto& epoch : record.epochs) epoch.validation_loss = 1.25, epoch.validation_accuracy = 0.5;
  const auto document = build({&record, 1});
  const auto* table = find<Table>(document, "training");
  ASSERT_NE(table, nullptr);
  EXPECT_THAT(to_csv(*table), AllOf(HasSubstr("validation_loss"), HasSubstr("1.25")));
  const auto* plot = find<Plot>(document, "training-loss");
  EXPECT_EQ(plot->series.back().name, "validation");
}

/// `batch` images in `image_s` each and an update of 0.1 s.
Record swept(std::int64_t batch, double image_s) {
  auto record = make_record({.kind = "sweep",
                             .scaling = "",
                             .local_batch = batch,
                             .forward = static_cast<double>(batch) * image_s / 3,
                             .backward = static_cast<double>(batch) * image_s * 2 / 3,
                             .update = 0.1,
                             .data_wait = 0,
                             .copy = 0,
                             .other = 0,
                             .jitter = {1, 1, 1, 1, 1, 1, 1, 1}});
  record.model.training_flops = 1'000'000'000;
  record.peak =
      measure::PeakRecord{.threads = 2, .precision = "fp32", .flops_per_s = 200e9, .bytes_per_s = 20e9};
  record.model.bytes_a_sample = 10'000'000;
  record.model.bytes_a_step = 100'000'000;
  return record;
}

TEST(Cause, SaysWhyALargerBatchIsFasterAndWhyNoLonger) {
  const std::vector<Record> records{swept(10, 0.02), swept(100, 0.018), swept(1000, 0.02)};
  const std::string text = text_of(records);
  EXPECT_THAT(
      text,
      HasSubstr(
          "Why is a larger batch faster? sweep, 1 worker (1 core): from batch 10 to 100 an image "
          "takes 19.0 ms instead of 30.0 ms (one repeat): 81.8 % of it in the update, which is made "
          "once a step, for 10 times the images; 18.2 % of it in forward and backward, which compute at 55.6 "
          "instead of 50.0 GFLOP/s (direct form)."));
  EXPECT_THAT(
      text,
      HasSubstr(
          "Why is a still larger batch no faster? sweep, 1 worker (1 core): from batch 100 to 1000 an image takes 20.1 ms "
          "instead of 19.0 ms (one repeat), "));
  EXPECT_THAT(text,
              HasSubstr("forward and backward, which grow with the images, are 94.7 % of its step, at 55.6 "
                        "GFLOP/s (direct form)."));
  const auto document = build(records);
  for (const char* id : {"cause", "sweep-ledger"}) {
    const auto* table = find<Table>(document, id);
    ASSERT_NE(table, nullptr) << id;
    EXPECT_EQ(table->rows.size(), 3u);
    for (const auto& row : table->rows) EXPECT_EQ(row.size(), table->columns.size()) << id;
  }
  // The ledger's lines add up to its step.
  for (const auto& row : find<Table>(document, "sweep-ledger")->rows) {
    double sum = 0;
    for (std::size_t i = 3; i + 1 < row.size(); ++i) sum += *row[i].value;
    EXPECT_NEAR(sum, *row[2].value, 1e-12);
  }
}

Record joined(const std::string& bn) {
  auto record = make_record({.workers = 2});
  record.settings["bn"] = bn;
  auto& travels = record.communication;
  travels.parameter_bytes = 4 * golden::kParameters;
  travels.statistics_bytes = 38400;
  travels.padding_bytes = 64;
  travels.gradient_bytes = *travels.parameter_bytes + 38400 + 64;
  if (bn == "sync") travels.norm_bytes = 76800, travels.norm_collectives = 40;
  travels.collectives = (12 + 1 + travels.norm_collectives.value_or(0)) * record.window.steps + 2;
  return record;
}

TEST(Travels, AddsUpAndSaysWhatEachBatchNormExchanges) {
  const std::vector<std::pair<std::string, std::string>> said{
      {"local", "only the running statistics, which evaluation uses, are averaged, once a step, inside X"},
      {"sync", "every batch norm sums its means and variances over all workers inside forward"},
      {"ghost:32", "nothing more is exchanged than with --bn local"}};
  for (const auto& [bn, text] : said) {
    const Record record = joined(bn);
    const auto document = build({&record, 1});
    const auto* table = find<Table>(document, "travels");
    ASSERT_NE(table, nullptr);
    ASSERT_EQ(table->rows.size(), 1u);
    const auto& row = table->rows[0];
    ASSERT_EQ(row.size(), table->columns.size());
    EXPECT_EQ(*row[2].value + *row[3].value + *row[4].value, *row[5].value);
    EXPECT_EQ(*row[7].value, bn == "sync" ? 12 + 1 + 40 : 12 + 1);
    EXPECT_EQ(*row[8].value, 8 * *row[7].value);
    EXPECT_THAT(table->footnotes, testing::Contains(HasSubstr(text))) << bn;
  }
  // A device's votes go at the end of its last bucket.
  Record queued = joined("local");
  queued.communication.collectives = 12 * queued.window.steps + 2;
  EXPECT_EQ(*find<Table>(build({&queued, 1}), "travels")->rows[0][7].value, 12);
  queued.communication.collectives +=
      queued.window.steps;  // of something else: the record says where votes are
  queued.communication.vote_bytes = 32;
  queued.buckets.back().bytes += 32;
  EXPECT_EQ(*find<Table>(build({&queued, 1}), "travels")->rows[0][7].value, 12);
  Record without = joined("local");
  without.communication.statistics_bytes = 0;
  without.communication.gradient_bytes -= 38400;
  const auto document = build({&without, 1});
  ASSERT_NE(find<Table>(document, "travels"), nullptr);
  EXPECT_THAT(find<Table>(document, "travels")->footnotes, Not(testing::Contains(HasSubstr("--bn local"))));
  const Record alone = make_record({});
  EXPECT_EQ(find<Table>(build({&alone, 1}), "travels"), nullptr);
  Record parallel = joined("local");
  parallel.communication.parallel = "data-parallel";
  EXPECT_EQ(find<Table>(build({&parallel, 1}), "travels"), nullptr) << "there is no X";
}

TEST(Facts, NameOtherProgramsAndGpus) {
  auto one = make_record({}), two = make_record({.repeat = 1});
  one.window.others = {{.name = "ninja", .cores = 0.5}};
  two.window.others = {{.name = "ninja", .cores = 0.75}, {.name = "cron", .cores = 0.05}};
  two.environment.gpus = {"GPU 0: NVIDIA H100, MIG off"};
  const auto document = build(std::vector<Record>{one, two});
  EXPECT_THAT(document.facts,
              testing::Contains(testing::Pair("other programs on the cores",
                                              "ninja up to 0.75 cores, cron up to 0.05 cores")));
  EXPECT_THAT(document.facts, testing::Contains(testing::Pair("GPUs", "GPU 0: NVIDIA H100, MIG off")));
}

}  // namespace
}  // namespace paceline::report

#include "report/build.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "golden/records.h"
#include "report/study_records.h"

namespace paceline::report {
namespace {

using golden::make_record;
using golden::make_training;
using golden::Run;
using measure::Record;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A quick form trained half an epoch, and its report said "after 1 epoch" and called its seconds an epoch's.
TEST(Converge, CallsHalfAnEpochAHalf) {
  auto one = make_training({.accuracies = {0.4}});
  auto large =
      make_training({.variant = "large batch", .workers = 2, .global_batch = 512, .accuracies = {0.3}});
  for (Record* record : {&one, &large}) {
    record->data.train_samples = 51200;
    record->data.steps_per_epoch = 51200 / record->global_batch;
    record->epochs[0].updates = record->data.steps_per_epoch / 2;
    record->epochs[0].seconds = 10;
  }
  const std::vector<Record> records{one, large};
  const Document document = build(records);
  EXPECT_THAT(text_of(records), HasSubstr("After 0.5 epochs at global batch 512"));
  const Table* table = find<Table>(document, "converge");
  ASSERT_NE(table, nullptr);
  EXPECT_NEAR(*table->rows[0][3].value, 0.5, 0.01);
  EXPECT_EQ(table->columns[3].format, Format::fixed2);
  EXPECT_NEAR(*table->rows[0][8].value, 20, 0.5);
  EXPECT_EQ(table->rows[0][8].mark, "est.");
  EXPECT_NEAR(find<Plot>(document, "converge-epochs")->series[0].points[0].x, 0.5, 0.01);
}

TEST(Converge, CallsOneEpochAnEpoch) {
  auto one = make_training({.accuracies = {0.7}});
  auto large =
      make_training({.variant = "large batch", .workers = 2, .global_batch = 2048, .accuracies = {0.3}});
  for (Record* record : {&one, &large}) record->data.steps_per_epoch = record->epochs[0].updates;
  EXPECT_THAT(text_of({one, large}), AllOf(HasSubstr("in 1 epoch"), Not(HasSubstr("1 epochs"))));
}

// 40.5 % of efficiency stood without a mark over trainings beside which 1.5 cores were busy.
TEST(Converge, MarksSpeedupsOfTrainingsBesideOtherPrograms) {
  struct Case {
    std::optional<double> of_one, of_two;  ///< cores of other programs
    const char *mark, *said;
  };
  for (const auto& [of_one, of_two, mark, said] :
       {Case{0.0, 0.0, "", "baseline: speedup of an epoch"},
        Case{1.5, 0.0, "disturbed", "baseline: as timed beside other programs, speedup of an epoch"},
        Case{0.0, 1.5, "disturbed", "baseline: as timed beside other programs, speedup of an epoch"},
        Case{0.0, std::nullopt, "~", "baseline: as timed perhaps beside other programs, speedup of an"}}) {
    std::vector<Record> records{make_training({}),
                                make_training({.variant = "large batch", .workers = 2, .global_batch = 256})};
    records[0].window.others_cores = of_one;
    records[1].window.others_cores = of_two;
    const Document document = build(records);
    const Table* table = find<Table>(document, "converge-workers");
    ASSERT_NE(table, nullptr);
    for (const char* key :
         {"epoch_speedup", "epoch_efficiency", "total_speedup", "total_efficiency", "to_accuracy_speedup"}) {
      const auto at = std::ranges::find(table->columns, key, &Column::key) - table->columns.begin();
      const auto& cell = table->rows[1][static_cast<std::size_t>(at)];
      EXPECT_TRUE(cell.mark == mark || cell.mark.starts_with(std::string(mark) + " ")) << key << cell.mark;
    }
    EXPECT_THAT(text_of(records), HasSubstr(said)) << mark;
  }
}

// The curves had the extremes of the seeds, the table above them one standard error, and the summary said
// that all intervals of accuracies were the latter.
TEST(Converge, DrawsTheIntervalOfItsTable) {
  const auto records = study();
  const Document document = build(records);
  const Table* table = find<Table>(document, "converge");
  ASSERT_NE(table, nullptr);
  for (const char* id : {"converge-epochs", "converge-updates", "converge-seconds"}) {
    const Plot* plot = find<Plot>(document, id);
    ASSERT_NE(plot, nullptr) << id;
    for (std::size_t i = 0; i < plot->series.size(); ++i) {
      const Point& last = plot->series[i].points.back();
      const TableCell& accuracy = table->rows[i][10];
      ASSERT_TRUE(last.low && last.high) << id;
      EXPECT_NEAR(last.y, 100 * *accuracy.value, 1e-9);
      EXPECT_NEAR(*last.low, 100 * *accuracy.low, 1e-9);
      EXPECT_NEAR(*last.high, 100 * *accuracy.high, 1e-9);
    }
    EXPECT_THAT(plot->caption, HasSubstr("Means over 2 seeds, with one standard error to either side."));
  }
  EXPECT_THAT(text_of(records), HasSubstr("(clear; 2 seeds each)"));
}

TEST(Converge, DrawsNoIntervalOfOneSeedAndSaysSo) {
  std::vector<Record> records{make_training({}),
                              make_training({.variant = "large batch", .workers = 2, .global_batch = 2048})};
  const auto caption = [&] { return find<Plot>(build(records), "converge-epochs")->caption; };
  EXPECT_THAT(caption(), HasSubstr("One seed: no interval, another seed may lie elsewhere."));
  const Document document = build(records);
  for (const Point& point : find<Plot>(document, "converge-epochs")->series[0].points)
    EXPECT_FALSE(point.low);
  records.push_back(make_training({.seed = 1}));
  EXPECT_THAT(caption(), HasSubstr("one seed has none (baseline: 2 seeds; large batch: 1 seed)"));
  EXPECT_THAT(text_of(records), HasSubstr("; one seed against 2 seeds)"));
}

TEST(Converge, DrawsAccuracyOverTheSecondsOfTrainingWhereTheyCanBeCompared) {
  std::vector<Record> records{
      make_training({.accuracies = {0.4, 0.5}}), make_training({.seed = 1, .accuracies = {0.44, 0.52}}),
      make_training(
          {.variant = "large batch", .workers = 2, .global_batch = 2048, .accuracies = {0.3, 0.4}})};
  const double seconds[][2] = {{10, 12}, {14, 16}, {5, 6}};
  for (std::size_t i = 0; i < records.size(); ++i)
    for (std::size_t epoch = 0; epoch < 2; ++epoch) records[i].epochs[epoch].seconds = seconds[i][epoch];
  const Document document = build(records);
  const Plot* plot = find<Plot>(document, "converge-seconds");
  ASSERT_NE(plot, nullptr);
  ASSERT_EQ(plot->series.size(), 2u);
  EXPECT_DOUBLE_EQ(plot->series[0].points[0].x, 12);
  EXPECT_DOUBLE_EQ(plot->series[0].points[1].x, 26);
  EXPECT_DOUBLE_EQ(plot->series[0].points[1].y, 51);
  EXPECT_DOUBLE_EQ(plot->series[1].points[1].x, 11);
  EXPECT_THAT(plot->caption, Not(HasSubstr("Left out")));

  // Another machine's seconds, and those of a training whose first part nobody timed, are not drawn.
  auto elsewhere = records;
  elsewhere[2].environment.cpu = "another";
  const Document of_two = build(elsewhere);
  plot = find<Plot>(of_two, "converge-seconds");
  ASSERT_NE(plot, nullptr);
  EXPECT_EQ(plot->series.size(), 1u);
  EXPECT_THAT(plot->caption, HasSubstr("Left out: large batch: the baseline ran on another machine"));
  auto resumed = records;
  resumed[2].epochs[0].steps = resumed[2].epochs[0].updates - 1;
  EXPECT_THAT(find<Plot>(build(resumed), "converge-seconds")->caption,
              HasSubstr("Left out: large batch: the seconds of a part of it are not known."));
}

// A rate at which one of two seeds diverged stood in the table with the other's accuracy alone.
TEST(Converge, SaysThatTrainingsFailedBesideTheMeanOfTheOthers) {
  std::vector<Record> records;
  for (int seed = 0; seed < 2; ++seed) {
    const double luck = 0.001 * seed;
    records.push_back(make_training({.seed = seed, .accuracies = {0.70 + luck}}));
    records.push_back(make_training(
        {.variant = "large batch", .global_batch = 2048, .seed = seed, .accuracies = {0.40 + luck}}));
    records.push_back(make_training({.variant = "+ linear scaling",
                                     .global_batch = 2048,
                                     .seed = seed,
                                     .factor = 16,
                                     .rule = "linear",
                                     .accuracies = {0.60 + luck}}));
  }
  EXPECT_THAT(text_of(records),
              AllOf(HasSubstr("'+ linear scaling' gives back most"), Not(HasSubstr("failed"))));
  Record& failed = records.back();
  failed.status = "failed";
  failed.reason = "step 15 of 24: the loss is no longer finite";
  failed.epochs.clear();
  failed.ranks.clear();
  const Document document = build(records);
  const Table* table = find<Table>(document, "converge");
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(*table->rows[2][6].value, 1);
  EXPECT_EQ(table->rows[2][6].mark, "of 2");
  EXPECT_EQ(table->rows[0][6].mark, "");
  const auto text = text_of(records);
  EXPECT_THAT(text, HasSubstr("+ linear scaling: 1 of 2 trainings failed (step 15 of 24: the loss is no "
                              "longer finite); its mean is over those that did not, and flatters it."));
  EXPECT_THAT(text, HasSubstr("; of '+ linear scaling' 1 of 2 seeds failed."));
}

TEST(Converge, SaysWhichVersionsAccuraciesItAnswersWith) {
  std::vector<Record> records;
  for (const char* version : {"0.1.0", "0.2.0"}) {
    records.push_back(make_training({}));
    records.push_back(
        make_training({.variant = "large batch", .global_batch = 2048, .accuracies = {0.1, 0.2, 0.3}}));
    for (std::size_t i = records.size() - 2; i < records.size(); ++i)
      records[i].environment.version = version;
  }
  EXPECT_THAT(text_of(records),
              HasSubstr("at global batch 2048 (version 0.1.0) instead of 128 (version 0.1.0): "));
  records.resize(2);
  EXPECT_THAT(text_of(records), HasSubstr("at global batch 2048 instead of 128: "));
}

TEST(Converge, NamesOtherLostRepeatsApartFromFailures) {
  std::vector<Record> records;
  for (int seed = 0; seed < 3; ++seed) records.push_back(make_training({.seed = seed}));
  for (const int i : {1, 2}) {
    records[i].status = "failed";
    records[i].reason = i == 1 ? "diverged" : "rank 1 was lost";
    records[i].epochs.clear();
  }
  records[2].loss.emplace();
  const auto text = text_of(records);
  EXPECT_THAT(text, HasSubstr("baseline: 1 of 2 trainings failed (diverged); its mean is over those that"));
  EXPECT_THAT(text, HasSubstr("baseline: a repeat was lost: rank 1 was lost."));
}

TEST(Converge, SaysOnceThatThereIsOneSeed) {
  const std::vector<Record> records{
      make_training({}),
      make_training(
          {.variant = "large batch", .workers = 2, .global_batch = 2048, .accuracies = {0.1, 0.2, 0.3}})};
  EXPECT_THAT(text_of(records), HasSubstr("(beyond the test set's error; one seed each)"));
}

TEST(Converge, AnswersOfSeveralSeedsOfOneTraining) {
  std::vector<Record> records;
  for (int seed = 0; seed < 3; ++seed)
    records.push_back(make_training({.variant = "", .seed = seed, .accuracies = {0.70 + 0.01 * seed}}));
  for (Record& record : records) record.kind = "train";
  EXPECT_THAT(text_of(records),
              AllOf(HasSubstr("One configuration, nothing to compare: 71.0 % with a standard error of 0.7 "
                              "points after 1 epoch at global batch 128, mean over 3 seeds."),
                    HasSubstr("1 worker, fp32, seed 2.")));
  EXPECT_NE(find<Plot>(build(records), "converge-epochs"), nullptr);
}

}  // namespace
}  // namespace paceline::report

// The figures behind the answers: what the network gives by size, and how accuracy and loss went.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden/records.h"
#include "report/build.h"
#include "report/study_records.h"

namespace paceline::report {
namespace {

using golden::make_record;
using measure::Record;
using testing::ElementsAre;
using testing::HasSubstr;

/// The all-reduce alone, at three sizes: 50 us and 2 GB/s.
Record alone(int workers) {
  Record record;
  record.kind = "comm";
  record.id = "comm-w" + std::to_string(workers);
  record.workers = workers;
  record.collectives.emplace();
  for (const std::int64_t bytes : {40'000, 400'000, 4'000'000}) {
    const double seconds = 50e-6 + static_cast<double>(bytes) / 2e9;
    record.collectives->push_back({.collective = "all_reduce",
                                   .in_place = true,
                                   .bytes = bytes,
                                   .seconds = {0.99 * seconds, seconds, 1.01 * seconds}});
  }
  record.collectives->push_back(
      {.collective = "broadcast", .in_place = true, .bytes = 4'000'000, .seconds = {1e-3, 1e-3, 1e-3}});
  record.link_fits = {
      {.collective = "all_reduce", .in_place = true, .alpha_s = 50e-6, .bytes_per_s = 2e9, .residual = 0.08}};
  return record;
}

std::vector<Record> scaled_with(std::vector<Record> more) {
  std::vector<Record> records;
  for (int repeat = 0; repeat < 3; ++repeat)
    for (const int workers : {1, 2})
      records.push_back(make_record({.workers = workers,
                                     .repeat = repeat,
                                     .exposed_transfer = workers == 1 ? 0 : 0.02,
                                     .communication = workers == 1 ? 0 : 0.03,
                                     .transfer = workers == 1 ? 0 : 0.03}));
  for (auto& one : more) records.push_back(std::move(one));
  return records;
}

const Series* series(const Figure::View& view, const std::string& begin) {
  for (const Series& one : view.series)
    if (one.name.starts_with(begin)) return &one;
  return nullptr;
}

TEST(NetworkFigure, HasBusBandwidthBySizeWithFitCeilingAndTheTrainingsBucket) {
  const auto document = build(scaled_with({alone(2)}));
  const auto* figure = find<Figure>(document, "network");
  ASSERT_NE(figure, nullptr);
  const auto& view = figure->views.at(0);
  const auto* points = series(view, "alone, 2 ranks");
  ASSERT_NE(points, nullptr);
  ASSERT_EQ(points->points.size(), 3U) << "all-reduces alone";
  // 4 MB in 2.05 ms, times 2 (N-1)/N = 1.
  EXPECT_NEAR(points->points[2].y, 4e6 / 2.05e-3 / 1e9, 1e-6);
  EXPECT_EQ(points->points[2].record, "comm-w2");
  EXPECT_EQ(points->points[2].n, 3);
  const auto* fit = series(view, "fit, 2 ranks");
  ASSERT_NE(fit, nullptr);
  EXPECT_TRUE(fit->dashed);
  EXPECT_THAT(fit->name, HasSubstr("2.00 GB/s, residual 8.0 %"));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(fit->points[i].y, points->points[i].y, 1e-6);
  const auto* training = series(view, "in training");
  ASSERT_NE(training, nullptr);
  ASSERT_EQ(training->points.size(), 1U);
  EXPECT_EQ(training->points[0].x, 4'000'000) << "its largest bucket";
  EXPECT_EQ(training->points[0].mark, "best");
  ASSERT_EQ(view.marks.size(), 1U);
  EXPECT_EQ(view.marks[0].axis, 'y');
  EXPECT_EQ(view.marks[0].low, 9.0) << "the ceiling of its own buckets";
  EXPECT_EQ(
      figure->finding,
      "In training the all-reduce carries 1.49 GB/s; alone, up to 1.95 GB/s, depending on the message size");
}

TEST(NetworkFigure, SaysOfAloneOnlyWhatIsOfAsManyWorkers) {
  EXPECT_EQ(find<Figure>(build(scaled_with({alone(4)})), "network")->finding,
            "In training the all-reduce carries 1.49 GB/s");
  EXPECT_EQ(find<Figure>(build(scaled_with({})), "network")->finding,
            "In training the all-reduce carries 1.49 GB/s");
}

TEST(NetworkFigure, LeavesOutWhatIsOfAnotherModelOrWasNotMeasured) {
  auto other = alone(2);
  other.model.name = "lenet";
  auto not_begun = alone(2);
  not_begun.collectives.reset();
  not_begun.link_fits.reset();
  not_begun.status = "interrupted";
  const auto document = build(scaled_with({other, not_begun}));
  EXPECT_EQ(series(find<Figure>(document, "network")->views.at(0), "alone"), nullptr);
}

TEST(NetworkFigure, StandsInTablesOfTerminalAndMarkdownToo) {
  const auto document = build(scaled_with({alone(2)}));
  for (const auto& text : {to_terminal(document, 140), to_markdown(document)}) {
    EXPECT_THAT(
        text,
        HasSubstr(
            "In training the all-reduce carries 1.49 GB/s; alone, up to 1.95 GB/s, depending on the message size"));
    EXPECT_THAT(text, HasSubstr("How fast are the collectives alone?"));
    EXPECT_THAT(text, HasSubstr("Latency and bandwidth"));
  }
}

std::vector<std::string> names_of(const Figure& figure) {
  std::vector<std::string> names;
  for (const auto& view : figure.views) names.push_back(view.name);
  return names;
}

TEST(AccuracyFigure, HasTrainingBesideTestByEpochUpdateAndTime) {
  const auto records = study();
  const auto document = build(records);
  const auto* figure = find<Figure>(document, "accuracy");
  ASSERT_NE(figure, nullptr);
  EXPECT_THAT(names_of(*figure),
              ElementsAre("epoch", "update", "time", "loss by epoch", "loss by update", "loss by time"));
  for (const auto& view : figure->views) {
    const bool is_loss = view.name.starts_with("loss");
    const double scale = is_loss ? 1 : 100;
    for (const char* variant : {"baseline", "large batch"}) {
      const auto name = std::string(variant);
      const auto* test = series(view, name);
      const auto* training = series(view, name + ", training");
      ASSERT_NE(test, nullptr) << view.name;
      ASSERT_NE(training, nullptr) << view.name;
      EXPECT_EQ(test->name, name) << "the line of the test set keeps its colour in every view";
      EXPECT_FALSE(training->hidden);
      ASSERT_EQ(training->points.size(), 3U);
      double sum = 0, tested = 0;
      int seeds = 0;
      for (const Record& record : records)
        if (record.variant == name) {
          const auto& epoch = record.epochs.back();
          sum += is_loss ? epoch.train_loss : epoch.train_accuracy;
          tested += is_loss ? *epoch.test_loss : *epoch.test_accuracy;
          ++seeds;
        }
      EXPECT_NEAR(training->points.back().y, scale * sum / seeds, 1e-9) << view.name;
      EXPECT_NEAR(test->points.back().y, scale * tested / seeds, 1e-9) << view.name;
      EXPECT_EQ(training->points.back().x, test->points.back().x);
      EXPECT_TRUE(training->points.back().low) << "of two seeds";
    }
  }
}

TEST(AccuracyFigure, HidesTrainingLinesThatTheAnswerIsNotAbout) {
  auto records = study();
  for (int seed = 0; seed < 2; ++seed)
    records.push_back(golden::make_training({.variant = "+ sqrt scaling",
                                             .workers = 2,
                                             .global_batch = 2048,
                                             .seed = seed,
                                             .factor = 4,
                                             .rule = "sqrt",
                                             .accuracies = {0.17, 0.35, 0.45}}));
  const auto document = build(records);
  const auto& view = find<Figure>(document, "accuracy")->views.at(0);
  EXPECT_TRUE(series(view, "+ sqrt scaling, training")->hidden);
  EXPECT_FALSE(series(view, "+ linear scaling, training")->hidden) << "the best remedy";
}

TEST(AccuracyFigure, OfRecordsWithoutLossHasNoViewsOfIt) {
  auto records = study();
  for (Record& record : records)
    for (auto& epoch : record.epochs) {
      epoch.train_loss = std::numeric_limits<double>::quiet_NaN();
      epoch.test_loss.reset();
    }
  EXPECT_THAT(names_of(*find<Figure>(build(records), "accuracy")), ElementsAre("epoch", "update", "time"));
}

}  // namespace
}  // namespace paceline::report

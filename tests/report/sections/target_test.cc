#include "report/build.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "golden/records.h"
#include "report/study_records.h"

namespace paceline::report {
namespace {

using golden::make_training;
using measure::Record;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

/// A study of `batches` at three rates, of which the middle one is best; S_min is 500, B_c 300.
std::vector<Record> batch_study(const std::vector<std::int64_t>& batches,
                                const std::string& model = "mnist-cnn") {
  std::vector<Record> records;
  for (const auto batch : batches)
    for (const auto& [rate, factor] : {std::pair{0.05, 1.5}, {0.1, 1.0}, {0.2, 1.2}})
      for (int seed = 0; seed < 2; ++seed) {
        Record record = make_training({.variant = fmt::format("batch {}, lr {:g}", batch, rate),
                                       .global_batch = batch,
                                       .seed = seed,
                                       .lr = rate,
                                       .accuracies = {0.5, 0.9}});
        record.model.name = model;
        record.settings["model"] = model;
        record.settings["target"] = "accuracy=0.8";
        record.settings["evaluate-steps"] = "5";
        record.target = {.quantity = "accuracy", .value = 0.8};
        record.target->update =
            std::llround(factor * (1 + 0.02 * seed) * 500 * (1 + 300 / static_cast<double>(batch)));
        records.push_back(std::move(record));
      }
  return records;
}

TEST(Target, HasStepsSamplesAndTheFit) {
  const auto records = batch_study({32, 64, 128, 256, 512});
  const Document document = build(records, {});
  const Table* table = find<Table>(document, "steps-to-target");
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->title, "Steps and samples to accuracy 80.0 %");
  ASSERT_EQ(table->rows.size(), 5U);
  const auto& row = table->rows[1];
  EXPECT_EQ(row[0].value, 64);
  EXPECT_EQ(row[1].text, "0.1");
  EXPECT_NEAR(*row[2].value, 500 * (1 + 300.0 / 64), 50);
  EXPECT_NEAR(*row[3].value, 64 * *row[2].value, 1e-6);
  EXPECT_LT(*row[2].low, *row[2].value);
  EXPECT_NEAR(*row[4].value, *row[2].value, 10);
  EXPECT_EQ(row[5].text, "yes");
  EXPECT_THAT(table->footnotes, Contains(HasSubstr("Evaluated after each 5 updates")));
  const auto text = text_of(records);
  EXPECT_THAT(text, HasSubstr("is the critical batch B_c, and S_min 50"));
  EXPECT_THAT(text, HasSubstr("fitted to 5 batches"));
  EXPECT_THAT(text, HasSubstr("It speaks of batches from 32 to 512; beyond them it is a guess"));
  EXPECT_THAT(text, Not(HasSubstr("What happens to the accuracy?")));
}

TEST(Target, HasTheNoiseScaleBesideTheFit) {
  auto records = batch_study({32, 64, 128, 256, 512});
  EXPECT_THAT(text_of(records), Not(HasSubstr("noise scale")));
  for (std::size_t i = 0; i < 3; ++i)  // |G|^2 = 1 and S = 40, 80, 120
    records[i].epochs.front().gradient_squares =
        measure::GradientSquares{.every = 1,
                                 .small_batch = 10,
                                 .large_batch = 40,
                                 .small = std::vector<double>(20, 5 + 4 * static_cast<double>(i)),
                                 .large = std::vector<double>(20, 2 + static_cast<double>(i))};
  EXPECT_THAT(text_of(records), HasSubstr("in 3 of the trainings was 80.0 (median; 40.0 to 120"));
}

TEST(Target, IsAnsweredOnTheFirstScreen) {
  auto records = batch_study({32, 64, 128, 256, 512});
  const auto answer = [&] {
    const Document document = build(records, {});
    for (const Answer* one : all<Answer>(document))
      if (one->id == "accuracy") return *one;
    return Answer{};
  };
  EXPECT_EQ(answer().certainty, Certainty::decided);
  EXPECT_NEAR(answer().value.value(), 300, 3);
  EXPECT_EQ(answer().sentence, "It needs twice the fewest steps. Fitted to batches from 32 to 512.");
  std::erase_if(records, [](const Record& one) { return one.repeat > 0; });
  EXPECT_EQ(answer().chip, "one seed");
  std::erase_if(records, [](const Record& one) { return one.global_batch > 128; });
  EXPECT_EQ(answer().certainty, Certainty::not_decided);
  EXPECT_EQ(answer().figure, "128");
}

TEST(Target, DrawsTheCurveAndItsReach) {
  const Document document = build(batch_study({32, 64, 128, 256, 512}), {});
  for (const char* id : {"steps-to-target", "samples-to-target"}) {
    const Plot* plot = find<Plot>(document, id);
    ASSERT_NE(plot, nullptr) << id;
    EXPECT_TRUE(plot->x.log && plot->y.log);
    ASSERT_EQ(plot->series.size(), 3U);
    EXPECT_EQ(plot->series[0].points.size(), 5U);
    EXPECT_EQ(plot->series[1].points.back().x, 512);
    EXPECT_TRUE(plot->series[2].dashed);
    EXPECT_EQ(plot->series[2].points.back().x, 4 * 512);
  }
}

TEST(Target, MarksAnEndOfTheGrid) {
  auto records = batch_study({32, 64, 128, 256, 512});
  std::erase_if(records,
                [](const Record& one) { return one.global_batch == 512 && one.learning_rate.peak < 0.1; });
  const Document document = build(records, {});
  const Table* table = find<Table>(document, "steps-to-target");
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->rows[4][1].mark, "end");
  EXPECT_EQ(table->rows[4][4].mark, "beyond");
  EXPECT_EQ(table->rows[4][5].text, "no");
  EXPECT_THAT(table->footnotes,
              Contains(HasSubstr("end: the best learning rate is the lowest or the highest")));
  EXPECT_THAT(text_of(records), HasSubstr("from 32 to 256"));
}

TEST(Target, SaysWhyThereIsNoFit) {
  EXPECT_THAT(text_of(batch_study({32, 64, 128})),
              HasSubstr("No curve is fitted: a fit needs 4 batches with a tuned rate"));
}

TEST(Target, KeepsModelsApart) {
  auto records = batch_study({32, 64, 128, 256});
  const auto others = batch_study({32, 64, 128, 256}, "resnet8-cifar");
  records.insert(records.end(), others.begin(), others.end());
  const auto text = text_of(records);
  EXPECT_THAT(text, HasSubstr("(mnist-cnn on cifar10)"));
  EXPECT_THAT(text, HasSubstr("(resnet8-cifar on cifar10)"));
}

TEST(Target, IsLeftOutForASingleBatch) {
  EXPECT_EQ(find<Table>(build(batch_study({32}), {}), "steps-to-target"), nullptr);
}

}  // namespace
}  // namespace paceline::report

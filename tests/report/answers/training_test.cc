// The answers about a single training: what it reached, its curves, what to do with it.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "golden/records.h"
#include "report/answers/answers.h"
#include "report/build.h"
#include "report/study_records.h"

namespace paceline::report {
namespace {

using golden::make_record;
using golden::make_training;
using measure::Record;
using testing::HasSubstr;
using testing::Not;

Record one_training(std::vector<double> accuracies = {0.40, 0.60, 0.70}) {
  auto record = make_training({.variant = "", .accuracies = std::move(accuracies)});
  record.command = "paceline train --model resnet18-cifar --out runs/a";
  return record;
}

const Answer& best_of(const Document& document) { return *all<Answer>(document).front(); }

TEST(Training, SaysWhatItReached) {
  const Document document = build(std::vector{one_training()});
  const Answer& best = best_of(document);
  EXPECT_EQ(best.figure, "70.0 % of test images after 3 epochs of training.");
  EXPECT_DOUBLE_EQ(*best.value, 0.70);
  for (const Answer* answer : all<Answer>(document))
    EXPECT_NE(answer->certainty, Certainty::not_measured) << answer->id;
}

TEST(Training, LeadsWithTheTestOfItsChoice) {
  auto record = one_training();
  for (auto& epoch : record.epochs)
    epoch.validation_accuracy = std::exchange(epoch.test_accuracy, std::nullopt);
  record.test_set = {.policy = "last", .reads = 10000, .epoch = 2, .loss = 1.1, .accuracy = 0.58};
  const Answer best = best_of(build(std::vector{record}));
  EXPECT_EQ(best.figure, "58.0 % of test images with the weights of epoch 2 of 3.");
  EXPECT_DOUBLE_EQ(*best.value, 0.58);
}

TEST(Training, HasItsCurves) {
  const Document document = build(std::vector{one_training({0.4, 0.7, 0.6})});
  const Figure* figure = find<Figure>(document, "hero");
  ASSERT_NE(figure, nullptr);
  EXPECT_THAT(figure->finding, HasSubstr("70.0 % of test images after epoch 2, the best"));
  ASSERT_EQ(figure->views.size(), 2U);
  ASSERT_EQ(figure->views[0].series.size(), 2U) << "test and training";
  EXPECT_DOUBLE_EQ(figure->views[0].series[0].points[1].y, 70);
}

/// A training whose test images were others from the end of its second epoch on.
Record with_other_test_images() {
  auto record = one_training({0.4, 0.9, 0.5, 0.6});
  record.changes = {{.setting = "epochs", .then = "2", .now = "4", .update = record.epochs[1].updates},
                    {.setting = measure::kTestImages,
                     .then = "32 images (ab..)",
                     .now = "28 images (cd..)",
                     .update = record.epochs[1].updates}};
  return record;
}

TEST(Training, DrawsNoLineOverOtherTestImages) {
  const auto record = with_other_test_images();
  const auto until = fmt::format("test until update {}", record.epochs[1].updates);
  const Document document = build(std::vector{record});
  const Figure* figure = find<Figure>(document, "hero");
  ASSERT_NE(figure, nullptr);
  EXPECT_THAT(figure->finding, HasSubstr("60.0 % of test images after epoch 4, the best"))
      << "of those that are tested now";
  for (const auto& view : figure->views) {
    ASSERT_EQ(view.series.size(), 3U);
    EXPECT_EQ(view.series[0].name, until);
    EXPECT_EQ(view.series[0].points.size(), 2U);
    EXPECT_EQ(view.series[1].name, "test");
    EXPECT_EQ(view.series[1].points.size(), 2U);
    EXPECT_EQ(view.series[2].points.size(), 4U) << "of training";
  }
  const Plot* plot = nullptr;
  for (const Plot* one : all<Plot>(document))
    if (one->id.ends_with("-accuracy")) plot = one;
  ASSERT_NE(plot, nullptr);
  ASSERT_EQ(plot->series.size(), 3U);
  EXPECT_EQ(plot->series[1].name, until);
  EXPECT_EQ(plot->series[2].points.size(), 2U);
  EXPECT_THAT(text_of({record}), HasSubstr("the list of test images is another: 28 images"));
}

TEST(Training, EndsWithWhatToDo) {
  const std::string text = text_of({one_training()});
  EXPECT_THAT(text, HasSubstr("paceline evaluate runs/a"));
  EXPECT_THAT(text, Not(HasSubstr("--resume")));
}

TEST(Training, StoppedCanBeResumed) {
  auto record = one_training();
  record.status = "interrupted";
  record.reason = "stopped as asked";
  EXPECT_THAT(text_of({record}),
              HasSubstr("paceline train --model resnet18-cifar --out runs/a --resume runs/a"));
}

TEST(Training, ResumesWithWordsOfAShell) {
  auto record = one_training();
  record.status = "interrupted";
  const auto resumes = [&](const std::string& typed, const std::string& command) {
    record.command = typed;
    EXPECT_EQ(best_of(build(std::vector{record})).command, command);
  };
  resumes("paceline train --out 'a b/run'", "paceline train --out 'a b/run' --resume 'a b/run'");
  resumes("paceline train '--out=a b' --lr 0.1", "paceline train '--out=a b' --lr 0.1 --resume 'a b'");
  resumes("paceline train --resume t4 --out t4", "paceline train --out t4 --resume t4");
  resumes("paceline train --out t4 --resume=t3", "paceline train --out t4 --resume t4");
  resumes("paceline train --lr 0.1", "");
  record.command = "paceline train --out 'a b/run'";
  EXPECT_THAT(text_of({record}), HasSubstr("paceline evaluate 'a b/run'"));
}

/// Stopped in its second epoch, after the first one was validated.
Record stopped_after_validation() {
  auto record = one_training({0.40, 0.60});
  record.status = "interrupted";
  for (auto& epoch : record.epochs) epoch.test_accuracy.reset();
  record.epochs[0].validation_accuracy = 0.671;
  record.epochs[1].train_accuracy = 0.748;
  record.epochs[1].updates = record.epochs[0].updates * 3 / 2;
  return record;
}

TEST(Training, LeadsWithTheLastValidatedEpoch) {
  auto record = stopped_after_validation();
  EXPECT_EQ(best_of(build(std::vector{record})).figure,
            "67.1 % of validation images after 1 epoch of training.");
  record.epochs[0].validation_accuracy.reset();
  EXPECT_EQ(best_of(build(std::vector{record})).figure,
            "74.8 % of training images after 1.5 epochs of training.");
  record.epochs.pop_back();
  record.epochs[0].updates = std::lround(0.4453 * static_cast<double>(record.data.steps_per_epoch));
  EXPECT_THAT(best_of(build(std::vector{record})).figure, HasSubstr("after 0.45 epochs of training."));
}

TEST(Training, IsValidatedBesideTimedSteps) {
  const auto document = build(std::vector{stopped_after_validation(), make_record({})});
  const auto answers = all<Answer>(document);
  const auto accuracy = std::ranges::find(answers, "accuracy", &Answer::id);
  ASSERT_NE(accuracy, answers.end());
  EXPECT_EQ((*accuracy)->figure, "67.1 %");
  EXPECT_EQ((*accuracy)->unit, "of validation images");
  EXPECT_EQ((*accuracy)->sentence, "After 1 epoch; the training is interrupted.");
}

TEST(Training, RunningIsNotInterrupted) {
  auto record = one_training();
  record.status = "running";
  const Document document = build(std::vector{record});
  EXPECT_THAT(best_of(document).sentence, HasSubstr("It goes on"));
  EXPECT_THAT(to_terminal(document), Not(HasSubstr("interrupted")));
}

TEST(Training, WithoutAnEpochHasTheUsualAnswers) {
  auto record = one_training();
  record.epochs.clear();
  EXPECT_THAT(best_of(build(std::vector{record})).figure, HasSubstr("Train with 1 worker"));
}

}  // namespace
}  // namespace paceline::report

// The page of one search: what won, by how much beyond noise, how far each was trained.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/build.h"
#include "report/study_records.h"

namespace paceline::report {
namespace {

using measure::Record;
using testing::HasSubstr;

Record trial(const std::string& rate, const std::vector<double>& accuracies) {
  Record record;
  record.kind = "search";
  record.variant = "lr " + rate;
  record.id = "search-lr-" + rate;
  record.model.name = "mnist-cnn";
  record.settings["seed"] = "0";
  record.settings["lr"] = rate;
  record.command = "paceline search --model mnist-cnn --lr 0.1,0.2,3 --halving";
  record.data.validation_samples = 1000;
  for (const double accuracy : accuracies) {
    const auto number = static_cast<std::int64_t>(record.epochs.size()) + 1;
    measure::EpochRecord epoch{.epoch = number, .updates = 10 * number, .seconds = 1};
    epoch.validation_accuracy = accuracy;
    epoch.validation_loss = 1 - accuracy;
    record.epochs.push_back(epoch);
  }
  return record;
}

Document of_search(double second) {
  return build(std::vector{trial("0.1", {0.80, 0.90}), trial("0.2", {0.70, second}), trial("3", {0.5})});
}

TEST(Search, SaysWhatWonAndByHowMuch) {
  const auto document = of_search(0.80);
  const auto answers = all<Answer>(document);
  EXPECT_EQ(answers[0]->figure, "lr 0.1 is best: 90.0 % of 1,000 validation images.");
  EXPECT_EQ(answers[0]->certainty, Certainty::careful) << "one seed";
  EXPECT_EQ(answers[1]->figure, "10.0");
  EXPECT_THAT(answers[2]->sentence, HasSubstr("1 for 1 epoch. 2 for 2 epochs."));
  EXPECT_EQ(answers[3]->certainty, Certainty::not_measured) << "the test set was not read";
}

TEST(Search, SaysThatWithinNoiseTheyTie) {
  const auto document = of_search(0.895);
  const auto answers = all<Answer>(document);
  EXPECT_EQ(answers[0]->certainty, Certainty::tie);
  EXPECT_THAT(answers[1]->sentence, HasSubstr("It cannot be told apart from lr 0.2."));
}

TEST(Search, DrawsTrialsAndTrainsTheBest) {
  const auto document = of_search(0.80);
  const auto* figure = find<Figure>(document, "search-epochs");
  ASSERT_NE(figure, nullptr);
  EXPECT_EQ(figure->views[0].series.size(), 3U);
  const auto* ranked = find<Figure>(document, "search-trials");
  ASSERT_NE(ranked, nullptr);
  EXPECT_EQ(ranked->views[0].series[0].points[0].mark, "best");
  EXPECT_THAT(to_markdown(document), HasSubstr("paceline train --model mnist-cnn --lr 0.1\n"));
}

}  // namespace
}  // namespace paceline::report

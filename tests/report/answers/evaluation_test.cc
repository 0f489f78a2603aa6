// The page of one evaluation: its headline, what is confused, pictures of mistakes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/build.h"
#include "report/sections/evaluated.h"
#include "report/study_records.h"

namespace paceline::report {
namespace {

using measure::Record;
using testing::HasSubstr;

Record evaluated_folder(int classes) {
  Record record = evaluated(classes);
  record.data.name = "folder";
  record.data.spec = "folder:/home/me/fruits-360/,size=64";
  record.model.name = "resnet8-cifar";
  record.command = "paceline evaluate runs/a";
  return record;
}

TEST(Evaluation, SaysHowManyAreRight) {
  const Document document = build(std::vector{evaluated_folder(3)});
  const Answer& best = *all<Answer>(document).front();
  EXPECT_EQ(best.figure, "80.0 % of 30 test images are right.");
  EXPECT_THAT(best.sentence, HasSubstr("95 % interval: 62.7 to 90.5 %"));
  EXPECT_EQ(document.title, "Paceline: resnet8-cifar on fruits-360");
  for (const Answer* answer : all<Answer>(document))
    EXPECT_NE(answer->certainty, Certainty::not_measured) << answer->id;
}

TEST(Evaluation, MapsAllClassesOrTheWorst) {
  const Document few = build(std::vector{evaluated_folder(3)});
  const auto* map = all<Heatmap>(few).at(0);
  EXPECT_EQ(map->rows.size(), 3U);
  EXPECT_EQ(map->columns, map->rows);
  EXPECT_EQ(map->cells[1].value, 2) << "class 0 taken for class 1";
  const Document many = build(std::vector{evaluated_folder(131)});
  map = all<Heatmap>(many).at(0);
  EXPECT_EQ(map->rows.size(), 20U);
  EXPECT_EQ(map->columns.back(), "others");
  for (std::size_t row = 0; row < map->rows.size(); ++row) {
    double sum = 0;
    for (std::size_t column = 0; column < map->columns.size(); ++column)
      sum += map->cells[row * map->columns.size() + column].value.value();
    EXPECT_EQ(sum, 10) << "every image of a row is in it";
  }
}

TEST(Evaluation, ShowsPicturesOfMistakes) {
  Record record = evaluated_folder(3);
  record.evaluation->mistakes[0].picture = "JPEG";
  const Document document = build(std::vector{record});
  const auto& gallery = *all<Gallery>(document).at(0);
  EXPECT_THAT(gallery.pictures, testing::ElementsAre("JPEG", ""));
  EXPECT_EQ(gallery.table.rows.size(), 2U);
  EXPECT_THAT(to_json(document), HasSubstr("\"pictures\":[\"SlBFRw==\",\"\"]"));
}

TEST(Evaluation, EndsWithWhatToDo) {
  const Document document = build(std::vector{evaluated_folder(3)});
  ASSERT_EQ(all<Next>(document).size(), 1U);
  EXPECT_THAT(to_markdown(document), HasSubstr("paceline evaluate runs/a --test-time-augmentation flip"));
}

}  // namespace
}  // namespace paceline::report

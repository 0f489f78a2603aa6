#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "golden/records.h"
#include "report/build.h"

namespace paceline::report {
namespace {

using golden::make_record;
using measure::Record;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

/// One and two workers of weak scaling, with a little waiting.
std::vector<Record> two_workers() {
  std::vector<Record> records;
  for (int repeat = 0; repeat < 2; ++repeat) {
    records.push_back(make_record({.workers = 1, .repeat = repeat}));
    records.push_back(make_record({.workers = 2,
                                   .repeat = repeat,
                                   .exposed_transfer = 0.05,
                                   .exposed_wait = 0.02,
                                   .communication = 0.2,
                                   .transfer = 0.1}));
  }
  return records;
}

const Section* section_of(const Document& document, const std::string& id) {
  const auto found = std::ranges::find(document.sections, id, &Section::id);
  return found == document.sections.end() ? nullptr : &*found;
}

template <typename Wanted>
const Wanted* block_of(const Document& document, const std::string& id) {
  for (const Section& section : document.sections)
    for (const Block& block : section.blocks)
      if (const auto* one = std::get_if<Wanted>(&block); one != nullptr && one->id == id) return one;
  return nullptr;
}

TEST(Prediction, DrawsCurvesWithBandMeasuredAndIdeal) {
  const auto document = build(two_workers());
  const auto* section = section_of(document, "prediction");
  ASSERT_NE(section, nullptr);
  const auto* figure = block_of<Figure>(document, "prediction");
  ASSERT_NE(figure, nullptr);
  ASSERT_EQ(figure->views.size(), 2U);
  for (const auto& view : figure->views) {
    ASSERT_EQ(view.series.size(), 3U);
    for (const Point& point : view.series[0].points) {
      ASSERT_TRUE(point.low && point.high);
      EXPECT_LE(*point.low, point.y);
      EXPECT_GE(*point.high, point.y);
    }
    EXPECT_EQ(view.series[1].points.size(), 2U);
    EXPECT_TRUE(view.series[2].dashed);
    EXPECT_TRUE(view.x.log);
  }
  EXPECT_THAT(figure->finding, HasSubstr("Predicted: "));
}

TEST(Prediction, PartsOfStepsAddUpToTable) {
  const auto document = build(two_workers());
  const auto* section = section_of(document, "prediction");
  ASSERT_NE(section, nullptr);
  const auto* parts = block_of<Plot>(document, "prediction-parts");
  const auto* table = block_of<Table>(document, "predicted-workers");
  ASSERT_TRUE(parts != nullptr && table != nullptr);
  for (std::size_t i = 0; i < parts->categories.size(); ++i) {
    double sum = 0;
    for (const Series& series : parts->series) sum += series.points[i].y;
    const auto row = std::ranges::find_if(
        table->rows, [&](const auto& one) { return *one[0].value == parts->series[0].points[i].x; });
    ASSERT_NE(row, table->rows.end());
    // Gains are not drawn, and parts of less than 0.1 % of a step are left out.
    EXPECT_GE(sum, 0.99 * *(*row)[1].value) << parts->categories[i];
  }
}

/// The commands that the report suggests.
std::vector<std::string> commands_of_next(const Document& document) {
  std::vector<std::string> commands;
  for (const Section& section : document.sections)
    for (const Block& block : section.blocks)
      if (const auto* next = std::get_if<Next>(&block))
        for (const auto& step : next->steps) commands.push_back(step.command);
  return commands;
}

TEST(Prediction, SuggestsWorkersWhereThereAreCores) {
  auto records = two_workers();
  EXPECT_THAT(commands_of_next(build(records)), Not(Contains(HasSubstr("--workers 1,"))));
  for (auto& record : records) record.environment.cores = 8;
  const auto document = build(records);
  const auto* section = section_of(document, "prediction");
  ASSERT_NE(section, nullptr);
  const auto* knees = block_of<Table>(document, "predicted-knees");
  ASSERT_NE(knees, nullptr);
  ASSERT_EQ(knees->rows.back()[0].text, "worth measuring next");
  const double workers = *knees->rows.back()[1].value;
  EXPECT_THAT(commands_of_next(document),
              Contains(HasSubstr("--workers 1," + std::to_string(static_cast<int>(workers)))));
}

TEST(Prediction, SaysWhatOneMachineCannotTell) {
  const auto text = to_markdown(build(two_workers()));
  EXPECT_THAT(text, HasSubstr("What would N workers do?"));
  EXPECT_THAT(text, HasSubstr("the network between hosts was not measured"));
}

TEST(Prediction, IsLeftOutForOneTraining) {
  const std::vector<Record> one{make_record({.kind = "train", .scaling = ""})};
  EXPECT_EQ(section_of(build(one), "prediction"), nullptr);
}

TEST(Prediction, IsLeftOutForTwoMachines) {
  auto records = two_workers();
  records.back().environment.cpu = "Another CPU";
  records.back().environment.host = "other";
  EXPECT_EQ(section_of(build(records), "prediction"), nullptr);
}

TEST(Prediction, MarksWhatWasEmulated) {
  auto records = two_workers();
  for (auto& record : records) {
    record.settings["emulate-link"] = "latency-us=50,gb-per-s=1";
    record.communication.communicator += " EMULATED link latency-us=50,gb-per-s=1";
  }
  // Without the link's figures nothing is predicted from such records.
  EXPECT_EQ(section_of(build(records), "prediction"), nullptr);
  BuildOptions options;
  options.emulated =
      analysis::AddedLink{.latency_s = analysis::Range::of(50e-6), .bytes_per_s = analysis::Range::of(1e9)};
  const auto document = build(records, options);
  const auto* section = section_of(document, "prediction");
  ASSERT_NE(section, nullptr);
  const auto* warning = std::get_if<Paragraph>(&section->blocks.front());
  ASSERT_NE(warning, nullptr);
  EXPECT_THAT(warning->text, HasSubstr("EMULATED"));
  const auto* table = block_of<Table>(document, "predicted-workers");
  for (const auto& row : table->rows) EXPECT_THAT(row[0].mark, HasSubstr("emulated"));
}

}  // namespace
}  // namespace paceline::report

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden/records.h"
#include "report/build.h"
#include "report/study_records.h"

namespace paceline::report {
namespace {

using measure::Record;
using testing::HasSubstr;
using testing::Not;

/// As `paceline comm` leaves it.
Record collectives(int workers) {
  Record record;
  record.kind = record.id = "comm";
  record.status = "complete";
  record.workers = workers;
  record.communication.communicator = "local";
  record.communication.algorithm = "direct";
  record.collectives = {
      {.collective = "all_reduce", .in_place = true, .bytes = 4'000'000, .seconds = {0.002, 0.002, 0.002}}};
  record.link_fits = {{.collective = "all_reduce",
                       .in_place = true,
                       .alpha_s = 0.00005,
                       .bytes_per_s = 2e9,
                       .residual = 0.01}};
  record.notes = {"4 ranks pinned"};
  return record;
}

TEST(Collectives, AloneAreTitledAndNotAskedAboutTrainings) {
  const auto text = text_of({collectives(4)});
  EXPECT_THAT(text, HasSubstr("Paceline: collectives of 4 ranks"));
  EXPECT_THAT(text, HasSubstr("Collectives: 4 ranks, local: direct"));
  EXPECT_THAT(text, HasSubstr("4 ranks pinned."));
  EXPECT_THAT(text, Not(HasSubstr("Not measured")));
  EXPECT_THAT(text, Not(HasSubstr("Which batch size")));
}

TEST(Collectives, BesideATrainingAreASectionOfItsReport) {
  const auto text = text_of({golden::make_record({.kind = "train", .scaling = ""}), collectives(4)});
  EXPECT_THAT(text, HasSubstr("Train with 1 worker"));
  EXPECT_THAT(text, HasSubstr("How fast are the collectives alone?"));
}

TEST(Collectives, SeveralRecordsHaveTablesOfTheirOwn) {
  const std::vector<Record> records{collectives(4), collectives(2)};
  const auto document = build(records, {});
  std::vector<std::string> ids;
  for (const auto& block : document.sections.front().blocks)
    if (const auto* table = std::get_if<Table>(&block)) ids.push_back(table->id);
  EXPECT_THAT(ids,
              testing::ElementsAre("collectives", "collective-fits", "collectives-2", "collective-fits-2"))
      << "the names of their CSV files";
}

TEST(Collectives, AreDrawnOverSizesWhereThereAreTwo) {
  const auto plots_of = [](const Record& record) {
    std::vector<Plot> plots;
    const auto document = build({&record, 1}, {});
    for (const auto& block : document.sections.front().blocks)
      if (const auto* plot = std::get_if<Plot>(&block)) plots.push_back(*plot);
    return plots;
  };
  auto record = collectives(4);
  EXPECT_TRUE(plots_of(record).empty()) << "one size is no line";
  record.collectives->push_back(
      {.collective = "broadcast", .in_place = true, .bytes = 1'000, .seconds = {1e-5, 1e-5, 1e-5}});
  record.collectives->push_back(
      {.collective = "all_reduce", .in_place = true, .bytes = 8'000'000, .seconds = {0.002, 0.003, 0.004}});
  const auto plots = plots_of(record);
  ASSERT_EQ(plots.size(), 1U);
  ASSERT_EQ(plots[0].series.size(), 1U);
  EXPECT_EQ(plots[0].series[0].name, "all_reduce, in place");
  const auto& point = plots[0].series[0].points.at(1);
  EXPECT_EQ(point.x, 8e6);
  EXPECT_NEAR(point.y, 8e-3 / 0.003 * 1.5, 1e-9) << "2 (N-1) / N of the algorithm bandwidth";
  EXPECT_NEAR(*point.low, 8e-3 / 0.004 * 1.5, 1e-9);
  EXPECT_NEAR(*point.high, 8e-3 / 0.002 * 1.5, 1e-9);
  EXPECT_TRUE(plots_of(collectives(1)).empty());
}

TEST(Collectives, MarkMoreRanksThanCores) {
  auto record = collectives(4);
  record.oversubscribed = true;
  EXPECT_THAT(text_of({record}), HasSubstr("*: more ranks than cores."));
}

}  // namespace
}  // namespace paceline::report

/// What an emulated link, straggler or storage took is no measurement of hardware: it must not look like one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden/records.h"
#include "report/build.h"
#include "report/study_records.h"

namespace paceline::report {
namespace {

using golden::make_record;
using measure::Record;
using testing::AllOf;
using testing::AnyOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

/// As `scale --emulate-link` leaves them: one worker has nobody to talk to, so nothing of it was emulated.
std::vector<Record> over_an_emulated_link() {
  std::vector<Record> records{
      make_record({}),
      make_record({.workers = 2, .exposed_transfer = 0.1, .communication = 0.2, .transfer = 0.1})};
  for (Record& record : records) record.settings["emulate-link"] = "latency=1ms,bandwidth=1GB/s";
  records[1].communication.communicator = "local + EMULATED link of 1000 us, 1 GB/s";
  return records;
}

TEST(Emulated, IsSaidOnTopOfTheReport) {
  const auto records = over_an_emulated_link();
  EXPECT_THAT(build(records).warnings, Contains(AllOf(HasSubstr("1 of 2 cells"), HasSubstr("EMULATED"),
                                                      HasSubstr("link of 1000 us, 1 GB/s"))));
  EXPECT_THAT(text_of({make_record({}), make_record({.workers = 2})}), Not(HasSubstr("EMULATED")));
}

/// The CUDA engine on the processor: what it took is the time of no GPU, for one worker too.
TEST(Emulated, AGpuOnTheProcessorIsSaidAndMarked) {
  std::vector<Record> records{make_record({}), make_record({.workers = 2})};
  for (Record& record : records) {
    record.device = "cuda-on-host";
    record.device_name = "processor (no GPU)";
  }
  const Document document = build(records);
  EXPECT_THAT(document.warnings, Contains(AllOf(HasSubstr("EMULATED"), HasSubstr("2 of 2 cells"),
                                                HasSubstr("no GPU: the CUDA engine on the processor"))));
  for (const char* id : {"scale-weak-time", "cells"}) {
    const Table* table = find<Table>(document, id);
    ASSERT_NE(table, nullptr) << id;
    for (const auto& row : table->rows)
      EXPECT_TRUE(std::any_of(row.begin(), row.end(), [](const TableCell& cell) {
        return cell.mark.find("emulated") != std::string::npos;
      })) << id;
  }
  EXPECT_THAT(text_of(records), HasSubstr("cuda-on-host, processor (no GPU)"));
}

TEST(Emulated, MarksItsRowsInEveryTable) {
  const auto records = over_an_emulated_link();
  const Document document = build(records);
  int tables = 0;
  for (const char* id : {"scale-weak-time", "scale-weak-ledger", "scale-weak-residual",
                         "scale-weak-bandwidth", "loader", "cells"}) {
    const Table* table = find<Table>(document, id);
    ASSERT_NE(table, nullptr) << id;
    ++tables;
    for (const auto& row : table->rows) {
      bool is_marked = false, is_of_two = false;
      for (const TableCell& cell : row) {
        is_marked = is_marked || cell.mark.find("emulated") != std::string::npos;
        is_of_two = is_of_two || cell.text.find("N 2") != std::string::npos;
      }
      if (table->columns[1].key == "workers") is_of_two = row[1].value == 2.0;
      EXPECT_EQ(is_marked, is_of_two) << id;
    }
    EXPECT_THAT(table->footnotes, Contains(HasSubstr("emulated: "))) << id;
  }
  EXPECT_EQ(tables, 6);
}

TEST(Emulated, IsARemarkOfTheCsvAndAMarkOfThePlots) {
  const auto records = over_an_emulated_link();
  const Document document = build(records);
  EXPECT_THAT(to_csv(*find<Table>(document, "scale-weak-time")), HasSubstr(",emulated"));
  int points = 0;
  for (const Plot* plot : all<Plot>(document))
    for (const Series& series : plot->series)
      for (const Point& point : series.points) points += point.mark == "emulated" ? 1 : 0;
  EXPECT_GE(points, 2);
}

TEST(Emulated, IsSaidByEveryAnswerThatComesOfIt) {
  const auto records = over_an_emulated_link();
  const Document document = build(records);
  for (const Answer* answer : all<Answer>(document))
    if (answer->value) {
      EXPECT_THAT(answer->chip, HasSubstr("emulated")) << answer->id;
    }
}

TEST(Emulated, IsAStragglerAndSlowStorageToo) {
  auto straggler = make_record({.workers = 2});
  straggler.communication.communicator = "local + EMULATED straggler: rank 1 2 times slower";
  EXPECT_THAT(build({&straggler, 1}).warnings, Contains(HasSubstr("straggler: rank 1 2 times slower")));
  auto storage = make_record({});
  storage.data.description = "synthetic images, EMULATED slow storage: 2000 us an image";
  EXPECT_THAT(build({&storage, 1}).warnings, Contains(HasSubstr("slow storage: 2000 us an image")));
}

// A training of two workers, and the same over an emulated link: two rows called the same.
TEST(Emulated, RowsDoNotBearTheNameOfMeasuredOnes) {
  auto plain = make_record({.kind = "train", .workers = 2});
  auto emulated = plain;
  emulated.settings["emulate-link"] = "latency=1ms";
  emulated.communication.communicator = "local + EMULATED link of 1000 us, no limit";
  const std::vector<Record> records{make_record({.kind = "train"}), plain, emulated};
  const Document document = build(records);
  const Table* table = find<Table>(document, "scale-weak-time");
  ASSERT_NE(table, nullptr);
  ASSERT_EQ(table->columns.back().label, "differs in");
  EXPECT_EQ(table->rows[1].back().text, "no emulate-link");
  EXPECT_EQ(table->rows[2].back().text, "emulate-link latency=1ms");
}

}  // namespace
}  // namespace paceline::report

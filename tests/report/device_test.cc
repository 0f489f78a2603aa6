/// What a report says of workers that compute on GPUs: nothing of cores, of the host's memory or of peaks
/// that belong to the processor.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "golden/records.h"
#include "report/build.h"
#include "report/study_records.h"

namespace paceline::report {
namespace {

using golden::make_record;
using measure::Record;
using testing::Contains;
using testing::ContainsRegex;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t kDevicePlan = 3'000'000'000;

/// As if a GPU a worker had computed it; workers of the processor would share the cores of one.
std::vector<Record> on_gpus(std::vector<Record> records) {
  for (Record& record : records) {
    record.device = "cuda";
    record.device_name = "NVIDIA H100 80GB HBM3";
    record.environment.cores = 16;
    record.threads_per_worker = 16 / record.workers;
    record.memory.device = {.workers = 1, .plan_bytes = kDevicePlan, .available_bytes = 80'000'000'000};
  }
  return records;
}

std::vector<Record> scaled() {
  return {make_record({.exposed_transfer = 0}),
          make_record({.workers = 2, .exposed_transfer = 0.1, .communication = 0.2, .transfer = 0.1}),
          make_record({.local_batch = 64})};
}

const Column* column_of(const Table& table, const std::string& key) {
  const auto found = std::ranges::find(table.columns, key, &Column::key);
  return found == table.columns.end() ? nullptr : &*found;
}

TEST(OfGpus, NoSentenceCountsTheCoresOfWorkers) {
  EXPECT_THAT(text_of(scaled()), HasSubstr("1 worker (1 core)"));
  const auto text = text_of(on_gpus(scaled()));
  EXPECT_THAT(text, HasSubstr("Baseline: 1 worker without any communicator."));
  for (const char* const words :
       {"workers? .[0-9]+ core", "on [0-9]+ cores?[.]", "shared the same cores", "†"})
    EXPECT_THAT(text, Not(ContainsRegex(words)));
  auto alone = on_gpus({make_record({.kind = "sweep"})});
  EXPECT_THAT(text_of(alone), HasSubstr("Train with 1 worker, 128 images: "));
  alone[0].device = "cpu";
  EXPECT_THAT(text_of(alone), HasSubstr("Train with 1 worker on 16 cores, 128 images: "));
}

TEST(OfGpus, MemoryIsThatOfTheDevice) {
  const Document document = build(on_gpus(study()));
  const auto* figure = find<Figure>(document, "batch");
  ASSERT_NE(figure, nullptr);
  EXPECT_THAT(figure->note, EndsWith("Memory is that of the fullest GPU."));
  ASSERT_EQ(figure->views.size(), 2U);
  ASSERT_EQ(figure->views[1].series.size(), 1U) << "the peak of a device is not measured";
  for (const Point& point : figure->views[1].series[0].points) EXPECT_EQ(point.y, kDevicePlan);
  const auto* table = find<Table>(document, "every-cell");
  ASSERT_NE(table, nullptr);
  const auto at = static_cast<std::size_t>(column_of(*table, "plan") - table->columns.data());
  for (const auto& row : table->rows) {
    EXPECT_EQ(row[at].value, kDevicePlan);
    EXPECT_FALSE(row[at + 1].value);
  }
}

TEST(OfGpus, PeaksAreOfProcessorsOnly) {
  const Document document = build(on_gpus(scaled()));
  const auto* table = find<Table>(document, "cause");
  ASSERT_NE(table, nullptr);
  const auto at = static_cast<std::size_t>(column_of(*table, "bound") - table->columns.data());
  EXPECT_EQ(table->title, "What the steps compute and move");
  for (const auto& row : table->rows)
    EXPECT_EQ(row[at].note, "product and copy are measured on processors only");
}

TEST(OfGpus, TheNetworkIsTimedBetweenThem) {
  const auto commands_of = [](const std::vector<Record>& records) {
    std::vector<std::string> commands;
    const Document document = build(records);
    for (const Next* next : all<Next>(document))
      for (const auto& step : next->steps) commands.push_back(step.command);
    return commands;
  };
  EXPECT_THAT(commands_of(scaled()), Contains("paceline comm --workers 2"));
  EXPECT_THAT(commands_of(on_gpus(scaled())), Contains("paceline comm --device cuda --workers 2"));
}

}  // namespace
}  // namespace paceline::report

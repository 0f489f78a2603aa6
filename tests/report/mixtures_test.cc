/// Records of several set-ups in one report: rows, answers and plots of each, and none of them lost or
/// pooled.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "analysis/compare/cell.h"
#include "analysis/compare/consistency.h"
#include "analysis/compare/setup.h"
#include "golden/fields.h"
#include "measure/setting.h"
#include "report/build.h"
#include "report/conclusions.h"
#include "report/study_records.h"

namespace paceline::report {
namespace {

using golden::make_record;
using measure::Record;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Two workers as threads, as processes of a host (`hosts` 1), or of two hosts (2). Step: 1.22 s times
/// `slower`.
Record joined(int hosts, const std::string& kind = "train", double slower = 1) {
  auto record = make_record({.kind = kind,
                             .workers = 2,
                             .forward = 0.4 * slower,
                             .backward = 0.8 * slower,
                             .exposed_transfer = 0.01,
                             .communication = 0.02,
                             .transfer = 0.02 * slower});
  record.communication.processes = 1;
  if (hosts == 0) return record;
  record.communication.communicator = hosts == 1 ? "mpi" : "gloo";
  record.communication.algorithm = hosts == 1 ? "direct (memory of the host)" : "exchange (messages)";
  record.communication.processes = 2;
  for (int rank = 0; rank < 2; ++rank)
    record.ranks[static_cast<std::size_t>(rank)].host = hosts == 1 || rank == 0 ? "bench" : "other";
  return record;
}

std::vector<std::string> texts_in(const Table& table, const std::string& key) {
  const auto found = std::find_if(table.columns.begin(), table.columns.end(),
                                  [&](const Column& column) { return column.key == key; });
  std::vector<std::string> texts;
  if (found == table.columns.end()) return texts;
  for (const auto& row : table.rows) {
    const auto& cell = row[static_cast<std::size_t>(found - table.columns.begin())];
    texts.push_back(cell.value ? fmt::format("{}", *cell.value) : cell.text);
  }
  return texts;
}

TEST(Mixtures, ThreadsProcessesAndHostsHaveRows) {
  const std::vector<Record> records{joined(0), joined(1, "train", 1.1), joined(2, "train", 2)};
  const Document document = build(records);
  for (const char* id : {"scale-weak-time", "scale-weak-ledger", "scale-weak-bandwidth"}) {
    const Table* table = find<Table>(document, id);
    ASSERT_NE(table, nullptr) << id;
    EXPECT_EQ(table->rows.size(), 3U) << id;
    EXPECT_THAT(texts_in(*table, "nodes"), testing::ElementsAre("1", "1", "2")) << id;
    EXPECT_THAT(texts_in(*table, "processes"), testing::ElementsAre("1", "2", "2")) << id;
    EXPECT_THAT(texts_in(*table, "threads"), testing::ElementsAre("1", "1", "1")) << id;
    EXPECT_THAT(texts_in(*table, "communicator"), testing::ElementsAre("local", "mpi", "gloo")) << id;
  }
  const Table* ways = find<Table>(document, "ways");
  ASSERT_NE(ways, nullptr);
  EXPECT_EQ(ways->rows.size(), 3U);
}

// Packed 3 + 1 and spread 2 + 2 had one name, and the second was left out; settings of the joining refused
// it.
TEST(Mixtures, ComparesPlacementsAndNoDebugBuild) {
  const auto placed = [](int first, const std::string& placement) {
    auto record = make_record({.kind = "train", .workers = 4, .exposed_transfer = first == 3 ? 0.01 : 0.5});
    record.communication.communicator = "gloo";
    record.communication.algorithm = "exchange (messages)";
    record.communication.processes = 4;
    record.settings["placement"] = record.communication.placement.emplace(placement);
    for (auto& rank : record.ranks) rank.host = rank.rank < first ? "bench" : "other";
    return record;
  };
  auto debug = placed(1, "spread");
  debug.environment.build = "Debug";
  const std::vector<Record> records{placed(3, "packed"), placed(2, "spread"), debug};
  const Document document = build(records);
  const Table* ways = find<Table>(document, "ways");
  ASSERT_NE(ways, nullptr);
  EXPECT_EQ(ways->rows.size(), 2U) << "the debug build is not set against them";
}

TEST(Mixtures, AScalingOfEachWayOfJoiningHasItsOwnLineAndTheOneBaselineOnce) {
  std::vector<Record> records{make_record({})};
  for (const int hosts : {0, 1, 2}) records.push_back(joined(hosts, "scale", 1 + 0.1 * hosts));
  const Document document = build(records);
  const Table* table = find<Table>(document, "scale-weak-time");
  ASSERT_NE(table, nullptr);
  EXPECT_THAT(texts_in(*table, "workers"), testing::ElementsAre("1", "2", "2", "2"));
  EXPECT_THAT(texts_in(*table, "communicator"), testing::ElementsAre("-", "local", "mpi", "gloo"));
  EXPECT_THAT(table->footnotes, testing::Contains("Baseline: 1 worker without any communicator."));
  const Plot* plot = find<Plot>(document, "weak-speedup");
  ASSERT_NE(plot, nullptr);
  ASSERT_EQ(plot->series.size(), 4U);
  EXPECT_EQ(plot->series[1].name, "local batch 128, threads of one process");
  EXPECT_EQ(plot->series[3].name, "local batch 128, 2 processes on 2 nodes");
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(plot->series[i].points.size(), 2U) << "from the one worker";
}

TEST(Mixtures, ColumnsOfJoiningStandOnlyWhereTheySaySomething) {
  const Document document = build(study());
  for (const Table* table : all<Table>(document))
    for (const Column& column : table->columns)
      EXPECT_THAT(column.key, Not(testing::AnyOf("nodes", "processes", "threads", "communicator")))
          << table->id;
}

std::vector<Record> two_sweeps() {
  std::vector<Record> records;
  for (const int workers : {1, 2})
    for (const std::int64_t batch : {32, 64})
      for (int repeat = 0; repeat < 3; ++repeat)
        records.push_back(make_record({.kind = "sweep",
                                       .scaling = "",
                                       .workers = workers,
                                       .local_batch = batch,
                                       .repeat = repeat,
                                       .forward = batch == 32 ? 0.4 : 0.5,
                                       .transfer = workers == 1 ? 0 : 0.02}));
  return records;
}

// Only the 1-worker sweep had a table, a line and an answer: "the best of all that were measured".
TEST(Mixtures, SweepsOnTwoWorkersHaveATable) {
  const auto records = two_sweeps();
  const Document document = build(records);
  ASSERT_NE(find<Table>(document, "sweep"), nullptr);
  const Table* two = find<Table>(document, "sweep-2");
  ASSERT_NE(two, nullptr);
  EXPECT_EQ(two->title, "Throughput against batch, 2 workers");
  const Plot* plot = find<Plot>(document, "sweep-throughput");
  ASSERT_NE(plot, nullptr);
  ASSERT_EQ(plot->series.size(), 2U);
  EXPECT_EQ(plot->series[1].name, "2 workers (2 cores)");
  EXPECT_EQ(plot->caption, "The knee on 1 worker is at 64. The knee on 2 workers is at 64.");
  EXPECT_THAT(text_of(records), HasSubstr("Train with 2 workers, 64 images each"));
  EXPECT_NE(find<Table>(document, "bandwidth"), nullptr) << "what two workers exchange";
}

// Batches of both models alternated in one line without a name.
TEST(Mixtures, EachOfTwoModelsHasItsAnswers) {
  std::vector<Record> records;
  for (const char* model : {"resnet18-cifar", "resnet8-cifar"})
    for (const int workers : {1, 2})
      for (const std::int64_t batch : {32, 64}) {
        records.push_back(
            make_record({.workers = workers, .local_batch = batch, .transfer = workers == 1 ? 0 : 0.02}));
        records.back().model.name = model;
        records.back().settings["model"] = model;
      }
  const std::string text = text_of(records);
  for (const char* model : {"resnet18-cifar", "resnet8-cifar"})
    EXPECT_THAT(text, HasSubstr(fmt::format("## Answer: {}", model)));
  const Document document = build(records);
  const Table* table = find<Table>(document, "scale-weak-time");
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(texts_in(*table, "model").front(), "resnet18-cifar");
  EXPECT_EQ(texts_in(*table, "model").back(), "resnet8-cifar");
}

TEST(Mixtures, SaysOfTablesWhoseWorkersAreJoinedOtherwiseThatTheyAre) {
  auto strong = joined(1, "scale");
  strong.scaling = "strong";
  const std::vector<Record> records{make_record({}), joined(0, "scale"), strong};
  EXPECT_THAT(build(records).warnings,
              testing::Contains(AllOf(HasSubstr("not joined alike in all tables: in weak scaling by local ("),
                                      HasSubstr("in strong scaling by mpi ("))));
}

/// "settings.lr" or a field.
void change(Record& record, const std::string& field) {
  const std::string settings = "settings.";
  if (field.starts_with(settings))
    record.settings[field.substr(settings.size())] += "x";
  else
    golden::change_field(record, field);
}

/// The fields of a record that may tell cells apart, from the record itself, and all settings.
std::vector<std::string> telling_fields() {
  Record record = joined(1);
  auto fields = golden::all_fields(record);
  for (std::size_t row = 0; row < measure::Setting::count(); ++row)
    fields.push_back("settings." + std::string(measure::Setting::at(row).key()));
  std::erase_if(fields, [&](const std::string& field) {
    Record other = record;
    change(other, field);
    return analysis::setup(other) == analysis::setup(record);
  });
  return fields;
}

/// Weak and strong are two questions that are asked of a cell of scaling, and do not change its figures.
analysis::Setup asked_alike(analysis::Setup setup) {
  if (analysis::text_of(setup, "kind") == "scale")
    std::erase_if(setup, [](const auto& entry) { return entry.name == "scaling"; });
  return setup;
}

/// Each record in exactly one place, and no two that differ in their set-ups in the same.
void expect_each_once(const std::vector<Record>& records, const std::vector<analysis::Cell>& cells,
                      const std::string& what) {
  std::map<const Record*, int> places;
  for (const auto& cell : cells) {
    for (const auto* list : {&cell.records, &cell.lost})
      for (const Record* record : *list) ++places[record];
    for (const Record* record : cell.records)
      EXPECT_EQ(asked_alike(analysis::setup(*record)), asked_alike(analysis::setup(*cell.records.front())))
          << what;
  }
  for (const Record& record : records) EXPECT_EQ(places[&record], 1) << what << ": " << record.id;
}

/// Every cell in the list of all, under a name of its own, and every measured one in the tables of its kind.
void expect_shown(const Conclusions& conclusions, const Document& document, const std::string& what) {
  const auto& cells = conclusions.cells;
  const Table* list = find<Table>(document, "cells");
  ASSERT_NE(list, nullptr) << what;
  ASSERT_EQ(list->rows.size(), cells.size()) << what;
  std::set<std::pair<std::string, std::string>> names;
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (cells[i].is_measured()) {
      EXPECT_TRUE(names.emplace(list->rows[i][0].text, list->rows[i][1].text).second)
          << what << ": two cells called " << list->rows[i][1].text;
    }
  std::size_t scaled = 0, swept = 0, rows = 0;
  for (const auto& cell : cells) {
    scaled += cell.kind == "scale" && (cell.scaling == "weak" || cell.scaling == "strong") ? 1 : 0;
    swept += cell.kind == "sweep" ? 1 : 0;
  }
  for (const char* id : {"scale-weak-time", "scale-strong-time"})
    if (const Table* table = find<Table>(document, id)) rows += table->rows.size();
  EXPECT_GE(rows, scaled) << what;
  rows = 0;
  for (const Table* table : all<Table>(document))
    if (table->id.starts_with("sweep")) rows += table->rows.size();
  EXPECT_GE(rows, swept) << what;
}

TEST(Mixtures, OfRecordsThatDifferInOneFieldAreNeitherPooledNorLost) {
  const auto fields = telling_fields();
  ASSERT_GT(fields.size(), 40U);
  std::mt19937 random(20261124);
  const auto pick = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  std::map<std::string, int> tried;
  for (int mixture = 0; mixture < 1000; ++mixture) {
    const int number = static_cast<int>(fields.size());  // each once, then any
    const std::string field = fields[static_cast<std::size_t>(mixture < number ? mixture : pick(number))];
    const char* const kinds[] = {"scale", "sweep", "train"};
    const std::string kind = kinds[pick(3)];
    Record base = joined(pick(3), kind, 1 + 0.1 * pick(5));
    base.scaling = kind == "scale" ? "weak" : "";
    Record other = base;
    change(other, field);
    const std::string what = fmt::format("{} of {} ({})", field, kind, mixture);
    std::vector<Record> records;
    const int own = 1 + pick(3), others = 1 + pick(2);
    for (int i = 0; i < own; ++i) records.push_back(base);
    for (int i = 0; i < others; ++i) records.push_back(other);
    if (pick(2) == 0) records.push_back(make_record({.kind = kind, .scaling = base.scaling}));
    if (pick(3) == 0) {  // and repeats without figures
      records.push_back(
          golden::make_skipped({.kind = kind, .scaling = base.scaling, .workers = 2}, "too slow"));
      records.push_back(base);
      records.back().status = "failed";
      records.back().reason = "diverged";
    }
    std::shuffle(records.begin(), records.end(), random);
    const Conclusions conclusions = conclude(records);
    expect_each_once(records, conclusions.cells, what);
    const bool is_asked_alike = asked_alike(analysis::setup(base)) == asked_alike(analysis::setup(other));
    if (!analysis::contradiction(other) && !is_asked_alike) {
      EXPECT_GE(conclusions.cells.size(), 2U) << what;
    }
    expect_shown(conclusions, build(records), what);
    ++tried[field];
    if (HasFailure()) return;
  }
  EXPECT_EQ(tried.size(), fields.size()) << "every field was in a mixture";
}

}  // namespace
}  // namespace paceline::report

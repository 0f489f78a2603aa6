#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "golden/records.h"
#include "report/build.h"

namespace paceline::report {
namespace {

using Json = nlohmann::ordered_json;

/// The lines of a log, read by its grammar: ":::MLLOG " and an object with these keys in this order.
std::vector<Json> events(const std::string& log) {
  std::vector<Json> all;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const std::string head = ":::MLLOG ";
    EXPECT_EQ(line.substr(0, head.size()), head);
    all.push_back(Json::parse(line.substr(head.size())));
    std::vector<std::string> keys;
    for (const auto& [key, value] : all.back().items()) keys.push_back(key);
    EXPECT_THAT(keys, testing::ElementsAre("namespace", "time_ms", "event_type", "key", "value", "metadata"));
    EXPECT_TRUE(all.back()["time_ms"].is_number_integer());
    EXPECT_THAT((std::set<std::string>{"POINT_IN_TIME", "INTERVAL_START", "INTERVAL_END"}),
                testing::Contains(all.back()["event_type"].get<std::string>()));
    EXPECT_TRUE(all.back()["metadata"]["lineno"].is_number_integer());
  }
  return all;
}

std::vector<Json> of_key(const std::vector<Json>& all, const std::string& key) {
  std::vector<Json> found;
  for (const Json& one : all)
    if (one["key"] == key) found.push_back(one);
  return found;
}

/// Two epochs of 10 s, and evaluations of 2 s in all.
measure::Record training() {
  auto record = golden::make_record({.kind = "train"});
  record.created = "2026-01-31T12:00:00Z";
  record.first_step_s = 3;
  record.settings["optimizer"] = "lars";
  record.settings["seed"] = "7";
  record.ranks[0].phases[static_cast<std::size_t>(measure::Phase::evaluation)] = 2;
  for (const std::int64_t epoch : {1, 2})
    record.epochs.push_back({.epoch = epoch,
                             .updates = 100 * epoch,
                             .seconds = 10,
                             .test_loss = 1.0,
                             .test_accuracy = 0.4 * epoch});
  return record;
}

TEST(Mllog, IsReadBackByItsGrammar) {
  const auto record = training();
  const auto files = mllog_files({&record, 1});
  ASSERT_EQ(files.size(), 1);
  EXPECT_EQ(files[0].name, record.id);
  const auto all = events(files[0].text);
  EXPECT_EQ(of_key(all, "opt_name")[0]["value"], "lars");
  EXPECT_EQ(of_key(all, "seed")[0]["value"], 7);
  EXPECT_EQ(of_key(all, "global_batch_size")[0]["value"], record.global_batch);
  const auto accuracies = of_key(all, "eval_accuracy");
  ASSERT_EQ(accuracies.size(), 2);
  EXPECT_DOUBLE_EQ(accuracies[1]["value"].get<double>(), 0.8);
  EXPECT_EQ(accuracies[1]["metadata"]["epoch_num"], 2);
  // 3 s until the first step, then 10 s of training and 1 s of evaluation twice.
  const auto begin = of_key(all, "init_start")[0]["time_ms"].get<std::int64_t>();
  EXPECT_EQ(begin, 1769860800000);
  EXPECT_EQ(of_key(all, "run_start")[0]["time_ms"].get<std::int64_t>() - begin, 3000);
  EXPECT_EQ(of_key(all, "run_stop")[0]["time_ms"].get<std::int64_t>() - begin, 25000);
  EXPECT_EQ(of_key(all, "run_stop")[0]["metadata"]["status"], "success");
}

TEST(Mllog, NamesFilesAsReportsDo) {
  auto record = training();
  record.id = "../of/another";
  const auto files = mllog_files(std::vector{record, record});
  ASSERT_EQ(files.size(), 2);
  EXPECT_EQ(files[0].name, "-.-of-another");
  EXPECT_EQ(files[1].name, "-.-of-another-2");
}

// Gradients of several passes are added before an update.
TEST(Mllog, CountsThePassesOfAStep) {
  auto record = training();
  const auto value_of = [&](const char* key) {
    return of_key(events(mllog_files({&record, 1})[0].text), key)[0]["value"].get<std::int64_t>();
  };
  EXPECT_EQ(value_of("gradient_accumulation_steps"), 1);
  EXPECT_EQ(value_of("model_bn_span"), record.local_batch);
  record.settings["micro-batch"] = "32";
  EXPECT_EQ(value_of("gradient_accumulation_steps"), record.local_batch / 32);
  EXPECT_EQ(value_of("model_bn_span"), 32);
  record.settings["micro-batch"] = "0.5";
  EXPECT_EQ(value_of("gradient_accumulation_steps"), 1) << "an edited record";
  record.settings["shard"] = "32";
  record.settings["bn"] = "sync";
  EXPECT_EQ(value_of("gradient_accumulation_steps"), 1);
  EXPECT_EQ(value_of("model_bn_span"), record.global_batch);
}

// Each interval ends, in the order in which intervals have to be nested, and no time runs backwards.
TEST(Mllog, EndsEveryInterval) {
  const auto record = training();
  std::vector<std::string> open;
  std::int64_t before = 0;
  for (const Json& one : events(mllog_files({&record, 1})[0].text)) {
    const auto key = one["key"].get<std::string>();
    EXPECT_GE(one["time_ms"].get<std::int64_t>(), before);
    before = one["time_ms"].get<std::int64_t>();
    if (one["event_type"] == "INTERVAL_START") open.push_back(key.substr(0, key.rfind('_')));
    if (one["event_type"] != "INTERVAL_END") continue;
    ASSERT_FALSE(open.empty());
    EXPECT_EQ(open.back(), key.substr(0, key.rfind('_')));
    open.pop_back();
  }
  EXPECT_THAT(open, testing::IsEmpty());
}

TEST(Mllog, SaysThatItIsNoSubmission) {
  const auto record = training();
  const auto all = events(mllog_files({&record, 1})[0].text);
  EXPECT_THAT(of_key(all, "submission_org")[0]["value"].get<std::string>(),
              testing::HasSubstr("no submission"));
  EXPECT_EQ(of_key(all, "submission_status")[0]["value"], "research");
}

TEST(Mllog, NamesTrainingsApartAndLeavesTimings) {
  std::vector<measure::Record> records{training(), training(), golden::make_record({})};
  const auto files = mllog_files(records);
  ASSERT_EQ(files.size(), 2);
  EXPECT_NE(files[0].name, files[1].name);
}

}  // namespace
}  // namespace paceline::report

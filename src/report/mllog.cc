#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>

#include "analysis/trainings/reference_curve.h"
#include "measure/ledger.h"
#include "report/answers/wording.h"
#include "report/build.h"

// A training as the lines that MLPerf's tools read (github.com/mlcommons/logging): who compares trainers has
// readers for them. A record has no time of each event but the seconds of each epoch, so times are sums of
// these from the record's begin on; what was evaluated took the mean of all evaluations.

namespace paceline::report {
namespace {

using Json = nlohmann::ordered_json;
using measure::Record;

/// Milliseconds since 1970 of "2026-01-31T12:00:00Z"; 0 if it is none.
double milliseconds_of(const std::string& utc) {
  std::tm parts{};
  if (::strptime(utc.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr) return 0;
  return 1000.0 * static_cast<double>(::timegm(&parts));
}

class Log {
 public:
  explicit Log(const Record& record) : now_ms_(milliseconds_of(record.created)) {}

  void point(const char* key, Json value, Json metadata = Json::object()) {
    line("POINT_IN_TIME", key, std::move(value), std::move(metadata));
  }
  void start(const char* key, Json metadata = Json::object()) {
    line("INTERVAL_START", key, nullptr, std::move(metadata));
  }
  void stop(const char* key, Json metadata = Json::object()) {
    line("INTERVAL_END", key, nullptr, std::move(metadata));
  }
  void pass(double seconds) { now_ms_ += 1000 * std::max(0.0, seconds); }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  /// A line's file and number stand in for the place in a trainer's source that others log.
  void line(const char* type, const char* key, Json value, Json metadata) {
    Json place{{"file", "paceline report"}, {"lineno", ++lines_}};
    place.update(metadata);
    const Json event{{"namespace", ""},           {"time_ms", static_cast<std::int64_t>(now_ms_)},
                     {"event_type", type},        {"key", key},
                     {"value", std::move(value)}, {"metadata", std::move(place)}};
    text_ += ":::MLLOG " + event.dump() + "\n";
  }

  double now_ms_;
  int lines_ = 0;
  std::string text_;
};

/// Seconds of an evaluation, on average; 0 if none was measured.
double evaluation_s(const Record& record) {
  const auto evaluated = std::ranges::count_if(record.epochs, is_evaluated);
  double longest = 0;
  for (const auto& rank : record.ranks)
    longest = std::max(longest, rank.phases[static_cast<std::size_t>(measure::Phase::evaluation)]);
  return evaluated > 0 ? longest / static_cast<double>(evaluated) : 0;
}

void log_setup(Log& log, const Record& record) {
  log.point("submission_benchmark", analysis::mlperf_benchmark(record));
  log.point("submission_org", "none: this is no submission to MLPerf, but a log in its form");
  log.point("submission_division", "open");
  log.point("submission_status", "research");
  log.point("submission_platform", analysis::mlperf_platform(record));
  log.point("seed", static_cast<std::int64_t>(analysis::number_of_setting(record, "seed")));
  log.point("global_batch_size", record.global_batch);
  log.point("gradient_accumulation_steps", analysis::passes_of_step(record));
  log.point("train_samples", record.data.train_samples);
  log.point("eval_samples", record.data.test_samples);
  for (const auto& [key, value] : analysis::mlperf_hyperparameters(record))
    log.point(key.c_str(), std::visit([](const auto& one) { return Json(one); }, value));
}

std::string log_of(const Record& record) {
  Log log(record);
  const double each_s = evaluation_s(record);
  log_setup(log, record);
  log.start("init_start");
  log.pass(record.first_step_s.value_or(0));
  log.stop("init_stop");
  log.start("run_start");
  for (const auto& epoch : record.epochs) {
    const Json number{{"epoch_num", epoch.epoch}};
    log.start("epoch_start", number);
    log.pass(epoch.seconds);
    log.stop("epoch_stop", number);
    const auto accuracy = epoch.test_accuracy ? epoch.test_accuracy : epoch.validation_accuracy;
    if (!accuracy) continue;
    log.start("eval_start", number);
    log.pass(each_s);
    log.point("eval_accuracy", *accuracy, number);
    log.stop("eval_stop", number);
  }
  log.stop("run_stop", {{"status", record.status == "complete" ? "success" : "aborted"}});
  return log.take();
}

}  // namespace

std::vector<NamedText> mllog_files(std::span<const Record> records) {
  std::vector<NamedText> files;
  OwnNames names;
  for (const Record& record : records)
    if (!record.epochs.empty()) files.push_back({.name = names.next(record.id), .text = log_of(record)});
  return files;
}

}  // namespace paceline::report

#pragma once

/// A command's events.jsonl: events that every command has, and its end.

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "measure/event_log.h"
#include "measure/record.h"
#include "train/given/stall_listener.h"

namespace paceline::cli {

/// Threads  any
class RunLog {
 public:
  /// `stalls`: this object listens to it until it is destroyed.
  RunLog(const std::filesystem::path& directory, std::shared_ptr<train::StallListener> stalls);
  /// If the run has begun and its end was not written, writes that it failed for an unknown reason.
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

  void write(const measure::Event& event);
  /// Runs `work`. If it throws and the run has begun, writes the exception as the run's end.
  std::vector<measure::Record> guard(const std::function<std::vector<measure::Record>()>& work);

 private:
  void fail(const std::string& reason);

  measure::EventLog log_;
  std::shared_ptr<train::StallListener> stalls_;
  std::atomic<bool> is_open_ = false;  ///< "start" was written, but no "end"
};

/// "watch: paceline serve DIR": how to follow the run, printed at its start; "" if the program was built
/// without a server.
[[nodiscard]] std::string watch_line(const std::filesystem::path& directory);

}  // namespace paceline::cli

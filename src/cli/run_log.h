#pragma once

/// A command's events.jsonl: what goes into it whatever the command, and its end.

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "measure/event_log.h"
#include "measure/record.h"
#include "train/stall_listener.h"

namespace paceline::cli {

/// Threads  any, while it lives
class RunLog {
 public:
  /// `stalls`: heard until this object's end.
  RunLog(const std::filesystem::path& directory, std::shared_ptr<train::StallListener> stalls);
  /// A run that has begun and not said its end failed: why is then not known.
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

  void write(const measure::Event& event);
  /// Runs `work`; what it throws is the run's end where it has begun and said none.
  std::vector<measure::Record> guard(const std::function<std::vector<measure::Record>()>& work);

 private:
  void fail(const std::string& reason);

  measure::EventLog log_;
  std::shared_ptr<train::StallListener> stalls_;
  std::atomic<bool> is_open_ = false;  ///< "start" was written, and no "end"
};

/// "watch: paceline serve DIR": how to look at the run while it goes on, said at its start; "" in a program
/// that was built without a server.
[[nodiscard]] std::string watch_line(const std::filesystem::path& directory);

}  // namespace paceline::cli

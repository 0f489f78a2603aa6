#pragma once

/// DIR/events.jsonl, written and read: a line for each event, appended and never changed.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "measure/events.h"

namespace paceline::measure {

/// Appends events to a run's file. A line is handed to the system at once, by one write: who reads the file
/// while the run goes on sees it, and a run that is killed loses none. The file is worth no run: where it
/// cannot be written (a full disk) that is said once, and the run goes on without it.
///
/// Threads  any
/// Cost     a line is some microseconds; nothing is synced
class EventLog {
 public:
  /// The file in `directory`, made by the first event; what is in it stays. `say` is told why it cannot be
  /// written, once.
  EventLog(std::filesystem::path directory, std::function<void(const std::string&)> say);
  ~EventLog();
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  void write(const Event& event);

 private:
  [[nodiscard]] bool open();
  void give_up(int error);

  const std::filesystem::path path_;
  const std::function<void(const std::string&)> say_;
  std::mutex mutex_;
  int file_ = -1;
  bool given_up_ = false;
};

/// Reads what was appended since the last look. A last line without its end is left for the next look, and a
/// line that is no event is passed over by whoever parses it.
///
/// Threads  one at a time
class EventTail {
 public:
  struct Line {
    std::string text;      ///< without its end
    std::int64_t end = 0;  ///< bytes of the file up to and with its end: where a reader goes on
  };

  /// Begins behind byte `from`, the `end` of a line, or at 0. Anything else begins at 0.
  explicit EventTail(std::filesystem::path file, std::int64_t from = 0);

  /// The new whole lines, at most `most_bytes` of them and at least one where there is one; nothing when
  /// there is no file. A file that was replaced or cut is read from its begin.
  ///
  /// Cost     a system call where nothing is new
  [[nodiscard]] std::vector<Line> read(std::int64_t most_bytes = std::int64_t{1} << 20);
  [[nodiscard]] std::int64_t offset() const { return offset_; }
  /// How often the file began anew: lines of read() then are those of another run.
  [[nodiscard]] std::uint64_t begun_anew() const { return begun_anew_; }

 private:
  std::filesystem::path file_;
  std::int64_t offset_ = 0;
  std::uint64_t begun_anew_ = 0;
  std::uint64_t inode_ = 0;  ///< of the file that offset_ belongs to; 0: not known yet
};

}  // namespace paceline::measure

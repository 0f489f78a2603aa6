#pragma once

/// Writes and reads DIR/events.jsonl: one line per event, appended and never changed.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "measure/events.h"

namespace paceline::measure {

/// Appends events to a run's file. Each line is written to the system at once, by one write, so readers see
/// it immediately, and a killed run loses none. If the file cannot be written (a full disk), that is reported
/// once, and the run continues without it.
///
/// Threads  any
/// Cost     some microseconds per line; nothing is synced
class EventLog {
 public:
  /// The first event creates the file in `directory`; existing contents stay. `say` is called once if the
  /// file cannot be written, with the reason.
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

/// Reads what was appended since the last call. An incomplete last line is left for the next call. Lines that
/// are no events are returned too; the parser skips them.
///
/// Threads  one at a time
class EventTail {
 public:
  struct Line {
    std::string text;      ///< without its end
    std::int64_t end = 0;  ///< file offset behind the line: where another reader can continue
  };

  /// Begins at byte `from`, which is the `end` of a line or 0. Any other value means 0.
  explicit EventTail(std::filesystem::path file, std::int64_t from = 0);

  /// The new complete lines: at most `most_bytes`, but at least one if there is one; empty if there is no
  /// file. A file that was replaced or truncated is read from its beginning.
  ///
  /// Cost     a system call if nothing is new
  [[nodiscard]] std::vector<Line> read(std::int64_t most_bytes = std::int64_t{1} << 20);
  [[nodiscard]] std::int64_t offset() const { return offset_; }
  /// How often the file was replaced or truncated; then read() returns lines of another run.
  [[nodiscard]] std::uint64_t begun_anew() const { return begun_anew_; }

 private:
  std::filesystem::path file_;
  std::int64_t offset_ = 0;
  std::uint64_t begun_anew_ = 0;
  std::uint64_t inode_ = 0;  ///< of the file that offset_ belongs to; 0: unknown yet
};

}  // namespace paceline::measure

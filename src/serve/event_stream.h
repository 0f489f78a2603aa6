#pragma once

/// Sends a run's events to clients as server-sent events. The id of each is the file offset after its line,
/// so that a client that reconnects (Last-Event-ID) continues where it was.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "measure/events.h"

namespace paceline::serve {

/// Reads a run's event file for all its clients: new lines are read and formatted once, however many clients
/// get them.
///
/// Threads  any; its own thread reads
/// Cost     a system call per look; the events of the last look are kept
class EventFeed {
 public:
  explicit EventFeed(std::filesystem::path file,
                     std::chrono::milliseconds look = std::chrono::milliseconds(1000));

  /// The latest events, and their position.
  struct News {
    std::int64_t begin = 0, end = 0;          ///< offsets in the file
    std::uint64_t file = 0;                   ///< counts files: a file that was replaced is a new one
    std::shared_ptr<const std::string> text;  ///< the events from begin to end; nullptr: none yet
  };
  /// Waits, at most `longest`, until there is more than the client has, which is at offset `at` of file
  /// number `file`.
  [[nodiscard]] News wait(std::int64_t at, std::uint64_t file, std::chrono::milliseconds longest,
                          const std::stop_token& stop);
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  void look();

  const std::filesystem::path path_;
  measure::EventTail tail_;  ///< used by the constructor, then by the thread
  std::mutex mutex_;         ///< guards news_
  std::condition_variable_any changed_;
  News news_;
  std::jthread thread_;  ///< last: it uses all of the above
};

/// The stream of one client.
///
/// Threads  one at a time
class EventStream {
 public:
  /// `from`: the last id that the client has seen; 0, or no id of this file: begins with the first event.
  EventStream(std::shared_ptr<EventFeed> feed, std::int64_t from, std::stop_token stop,
              std::chrono::milliseconds silence = std::chrono::milliseconds(10'000));

  /// Waits for the next text to send: all new events together, or after `silence` a comment, by which both
  /// sides notice a lost connection. Nothing: the stream has ended.
  [[nodiscard]] std::optional<std::string> next();

 private:
  const std::shared_ptr<EventFeed> feed_;
  const std::stop_token stop_;
  const std::chrono::milliseconds silence_;
  std::int64_t at_;  ///< offset up to which the client has the file
  std::uint64_t file_;
  bool has_begun_ = false;
};

/// The id in a Last-Event-ID header or in ?from=; 0 for other texts.
[[nodiscard]] std::int64_t event_id(const std::string& text);

}  // namespace paceline::serve

#pragma once

/// Clients that follow a run's events: server-sent events, each with the byte behind its line as id, so that
/// a client that comes again (Last-Event-ID) goes on where it was.

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

#include "measure/event_log.h"

namespace paceline::serve {

/// Looks into a run's file for all who follow it: what is new is read and written as server-sent events once,
/// however many get it.
///
/// Threads  any; a thread of its own looks
/// Cost     a system call a look; the events of one look are kept
class EventFeed {
 public:
  explicit EventFeed(std::filesystem::path file,
                     std::chrono::milliseconds look = std::chrono::milliseconds(1000));

  /// Where a client is, and what it gets.
  struct News {
    std::int64_t begin = 0, end = 0;          ///< of the file, in bytes
    std::uint64_t file = 0;                   ///< counts files: one that begins anew is another
    std::shared_ptr<const std::string> text;  ///< the events from begin to end; nullptr: none yet
  };
  /// The latest, as soon as it is another than what the client has: it stands at byte `at` of file number
  /// `file`. Waits no longer than `longest`.
  [[nodiscard]] News wait(std::int64_t at, std::uint64_t file, std::chrono::milliseconds longest,
                          const std::stop_token& stop);
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  void look();

  const std::filesystem::path path_;
  measure::EventTail tail_;  ///< of the constructor, then of the thread
  std::mutex mutex_;         ///< of news_
  std::condition_variable_any changed_;
  News news_;
  std::jthread thread_;  ///< last: it uses all of the above
};

/// One client.
///
/// Threads  one at a time
class EventStream {
 public:
  /// `from`: the id that the client saw last; 0, or none of this file: from the first event on.
  EventStream(std::shared_ptr<EventFeed> feed, std::int64_t from, std::stop_token stop,
              std::chrono::milliseconds silence = std::chrono::milliseconds(10'000));

  /// What is to be sent, as soon as there is something: events that came together are sent together; after
  /// `silence` a comment, by which both sides notice that the other is gone. Nothing: it is over.
  [[nodiscard]] std::optional<std::string> next();

 private:
  const std::shared_ptr<EventFeed> feed_;
  const std::stop_token stop_;
  const std::chrono::milliseconds silence_;
  std::int64_t at_;  ///< bytes of the file that the client has
  std::uint64_t file_;
  bool has_begun_ = false;
};

/// The id in a Last-Event-ID header, or in ?from=; 0 for what is none.
[[nodiscard]] std::int64_t event_id(const std::string& text);

}  // namespace paceline::serve

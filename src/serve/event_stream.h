#pragma once

/// One client that follows a run's events: server-sent events, each with the byte behind its line as id, so
/// that a client that comes again (Last-Event-ID) goes on where it was.

#include <chrono>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>

#include "measure/event_log.h"

namespace paceline::serve {

/// Threads  one at a time
class EventStream {
 public:
  /// `from`: the id that the client saw last; 0: from the first event on.
  EventStream(std::filesystem::path file, std::int64_t from, std::stop_token stop,
              std::chrono::milliseconds look = std::chrono::milliseconds(1000));

  /// What is to be sent: waits for at most one look when there is nothing new. Events that come together are
  /// sent together; after 10 s of silence a comment, by which both sides notice that the other is gone.
  /// Nothing: it is over.
  ///
  /// Cost     a system call a look; what is new is read once by each client
  [[nodiscard]] std::optional<std::string> next();

 private:
  const std::filesystem::path file_;
  measure::EventTail tail_;
  const std::stop_token stop_;
  const std::chrono::milliseconds look_;
  bool has_begun_ = false;
  std::int64_t silent_looks_ = 0;
};

/// The id in a Last-Event-ID header, or in ?from=; 0 for what is none.
[[nodiscard]] std::int64_t event_id(const std::string& text);

}  // namespace paceline::serve

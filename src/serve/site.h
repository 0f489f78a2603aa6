#pragma once

/// Site answers the requests of `serve`: the list of runs, their reports and events, metrics. It only reads
/// files.

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "report/document.h"
#include "serve/event_stream.h"
#include "serve/http_server.h"
#include "serve/run_book.h"

namespace paceline::serve {

// Makes the pages of `serve` besides reports: the list of runs, and errors.

/// `text` escaped for a URL: everything but letters, digits and "-._~/" as bytes, %20.
[[nodiscard]] std::string url_text(std::string_view text);

/// `suffix`: appended to links, "?token=..." or "". `now`: UTC, seconds since 1970.
[[nodiscard]] std::string list_page(std::span<const Run> runs, const std::string& directory,
                                    const std::string& suffix, double now);

/// The report page in the form that is served: it may connect to this server, and knows the address of the
/// run's events.
///
/// `events`: "/events?run=...", "" if there are none
[[nodiscard]] std::string served_page(std::string page, const std::string& events);

/// How many runs are in each state, and the figures of those in progress.
[[nodiscard]] std::string metrics_text(std::span<const Run> runs);

// Decides who may send requests: whoever has the token. Without one (--no-token, on the loopback address
// alone): every user of this machine, but no web page of another site.

/// Whether only this machine can reach the address `host`: "127.0.0.1", "::1", "localhost".
[[nodiscard]] bool is_loopback(std::string_view host);

/// 32 hexadecimal digits from the system's random numbers.
///
/// Errors   Error(device): the system provides none
[[nodiscard]] std::string make_token();

/// Whether two texts are equal, in a time that depends only on the length of `given`, so that timing reveals
/// nothing about `token`.
[[nodiscard]] bool is_same_token(std::string_view token, std::string_view given);

/// Why the request is refused, as a sentence; "" if it is not. With `token` "" the request's Host must be a
/// loopback name. Otherwise the token must come as "Authorization: Bearer TOKEN" or
/// as ?token=TOKEN.
[[nodiscard]] std::string refusal(const HttpRequest& request, std::string_view token);

struct SiteOptions {
  std::filesystem::path directory;
  std::string token;  ///< "": none is needed
  /// Makes the report of the records that are in a run's directory so far. May throw base::Error.
  std::function<report::Document(const std::filesystem::path&, bool is_running)> document;
  std::stop_token stop;  ///< ends streams and waits
  int most_streams = 100;
  std::function<std::vector<Run>()> list =
      {};  ///< called by one thread at a time; empty: RunBook of `directory`
};

/// Threads  any
class Site {
 public:
  explicit Site(SiteOptions options);

  /// Answers a request for one of these paths:
  ///
  ///   /                 the list of runs
  ///   /run/ID           a report page, which follows the run
  ///   /document/ID      its data, as `report --json` writes them
  ///   /events?run=ID    its events as they come; from Last-Event-ID or ?from= on
  ///   /metrics          runs in progress, for Prometheus
  ///
  /// Cost     a look through the directory; a report only when a record has changed, and for a run in
  ///          progress at most every 5 s. While the first look takes longer than 5 s, other requests get 503
  [[nodiscard]] HttpResponse answer(const HttpRequest& request);

 private:
  /// A report, and the state of the run's records when it was made.
  struct Report {
    std::string stamp;
    base::TimePoint made_at{};
    std::shared_ptr<const std::string> json, page;
  };

  struct KeptReport {
    std::mutex mutex;  ///< held while the report is made: other requests for it wait, those for others do not
    std::shared_ptr<const Report> report;
  };

  HttpResponse route(const HttpRequest& request);
  HttpResponse events(const HttpRequest& request);
  /// The runs, at most this many seconds old; older if another request is still reading the directory, and
  /// NotListedYet if that is the first one.
  std::vector<Run> runs(double oldest_s);
  std::optional<Run> find(const std::string& id);
  std::shared_ptr<const Report> report_of(const Run& run);
  std::shared_ptr<EventFeed> feed_of(const Run& run);

  const SiteOptions options_;
  std::mutex list_mutex_;  ///< guards the next four; nothing is read under it
  std::condition_variable_any has_listed_;
  bool is_listing_ = false;  ///< a request reads the directory, with list_
  std::vector<Run> listed_;
  base::TimePoint listed_at_{};
  std::function<std::vector<Run>()> list_;
  std::mutex report_mutex_;  ///< guards reports_
  std::map<std::string, std::shared_ptr<KeptReport>> reports_;
  std::mutex feed_mutex_;                                  ///< guards feeds_
  std::map<std::string, std::weak_ptr<EventFeed>> feeds_;  ///< by id, while a client follows the run
  std::shared_ptr<std::atomic<int>> streams_ = std::make_shared<std::atomic<int>>(0);
};

}  // namespace paceline::serve

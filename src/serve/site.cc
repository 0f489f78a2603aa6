#include "serve/site.h"

#include <fmt/ranges.h>
#include <sys/random.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <exception>
#include <utility>

#include "base/error.h"
#include "measure/environment.h"
#include "measure/events.h"
#include "report/page.h"

namespace paceline::serve {
namespace {

HttpResponse of_text(int status, std::string text, std::string type = "text/plain; charset=utf-8") {
  return {.status = status,
          .type = std::move(type),
          .body = std::make_shared<const std::string>(std::move(text))};
}

/// For a client that may ask again.
HttpResponse busy(std::string text) {
  auto response = of_text(503, std::move(text));
  response.headers.emplace_back("Retry-After", "5");
  return response;
}

/// Thrown where no list of the runs could be had in time.
struct NotListedYet {};

constexpr double kListAge_s = 1;

constexpr const char* kHtml = "text/html; charset=utf-8";
constexpr const char* kJson = "application/json; charset=utf-8";

/// While it lives, counts as one of the clients that follow a run.
class Seat {
 public:
  explicit Seat(std::shared_ptr<std::atomic<int>> taken) : taken_(std::move(taken)) { number_ = ++*taken_; }
  ~Seat() { --*taken_; }
  Seat(const Seat&) = delete;
  Seat& operator=(const Seat&) = delete;
  [[nodiscard]] int number() const { return number_; }

 private:
  std::shared_ptr<std::atomic<int>> taken_;
  int number_ = 0;
};

/// Adds headers to every answer: it must not be cached, must not be read by other sites, and has exactly the
/// stated type.
void add_headers(HttpResponse& response) {
  for (const auto& [name, value] : {std::pair{"Cache-Control", "no-store"},
                                    {"X-Content-Type-Options", "nosniff"},
                                    {"X-Frame-Options", "DENY"},
                                    {"Referrer-Policy", "no-referrer"}})
    response.headers.emplace_back(name, value);
}

/// "127.0.0.1:8000" -> "127.0.0.1", "[::1]:8000" -> "::1"
std::string_view without_port(std::string_view host) {
  if (host.starts_with('['))
    return host.substr(1, host.find(']') == std::string_view::npos ? 0 : host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

}  // namespace

Site::Site(SiteOptions options) : options_(std::move(options)), list_(options_.list) {
  if (!list_) list_ = [book = std::make_shared<RunBook>(options_.directory)] { return book->list(); };
}

HttpResponse Site::answer(const HttpRequest& request) {
  const auto why_not = refusal(request, options_.token);
  auto response =
      why_not.empty() ? HttpResponse() : of_text(options_.token.empty() ? 403 : 401, why_not + "\n");
  if (why_not.empty()) try {
      response = route(request);
    } catch (const NotListedYet&) {
      response =
          busy("the runs of this directory are still being listed for the first time; try again later\n");
    }
  add_headers(response);
  return response;
}

HttpResponse Site::route(const HttpRequest& request) {
  constexpr std::string_view kRun = "/run/", kDocument = "/document/";
  const std::string_view path = request.path;
  const auto suffix = options_.token.empty() || !request.query.contains("token")
                          ? std::string()
                          : "?token=" + url_text(request.query.at("token"));
  if (path == "/")
    return of_text(200, list_page(runs(kListAge_s), options_.directory.string(), suffix, measure::unix_now()),
                   kHtml);
  if (path == "/metrics")
    return of_text(200, metrics_text(runs(kListAge_s)), "text/plain; version=0.0.4; charset=utf-8");
  if (path == "/events") return events(request);
  const bool is_page = path.starts_with(kRun);
  if (!is_page && !path.starts_with(kDocument))
    return of_text(404, "there is no such page; / lists the runs\n");
  const auto run = find(std::string(path.substr(is_page ? kRun.size() : kDocument.size())));
  if (!run) return of_text(404, "there is no such run; / lists them\n");
  const auto report = report_of(*run);
  return {.type = is_page ? kHtml : kJson, .body = is_page ? report->page : report->json};
}

HttpResponse Site::events(const HttpRequest& request) {
  const auto asked = request.query.find("run");
  const auto run = asked == request.query.end() ? std::nullopt : find(asked->second);
  if (!run) return of_text(404, "there is no such run; give ?run=ID\n");
  const auto seat = std::make_shared<Seat>(streams_);
  if (seat->number() > options_.most_streams)
    return busy(fmt::format("{} clients follow runs already, which is the limit; try again later\n",
                            options_.most_streams));
  const auto from = request.query.find("from");
  const auto id = !request.last_event_id.empty() ? event_id(request.last_event_id)
                  : from != request.query.end()  ? event_id(from->second)
                                                 : 0;
  auto stream = std::make_shared<EventStream>(feed_of(*run), id, options_.stop);
  const auto first = std::make_shared<std::string>(
      fmt::format("event: status\ndata: {}\n\n", measure::to_json(status_event(*run))));
  return {.type = "text/event-stream", .stream = [stream, seat, first]() -> std::optional<std::string> {
            auto text = stream->next();
            return text ? std::optional(std::exchange(*first, "") + *text) : text;
          }};
}

std::shared_ptr<EventFeed> Site::feed_of(const Run& run) {
  const std::lock_guard lock(feed_mutex_);
  auto& feed = feeds_[run.id];
  auto followed = feed.lock();
  if (!followed) feed = followed = std::make_shared<EventFeed>(run.path / measure::kEventsFile);
  return followed;
}

std::vector<Run> Site::runs(double oldest_s) {
  constexpr std::chrono::milliseconds kForAnother{300}, kForTheFirst{5000};
  std::unique_lock lock(list_mutex_);
  const auto is_fresh = [&] {
    return listed_at_ != base::TimePoint{} && base::seconds_since(listed_at_) < oldest_s;
  };
  if (is_fresh()) return listed_;
  if (is_listing_) {
    // A large record may hold up the other request; this one answers with the last list, if there is one.
    const auto has_list = [this] { return listed_at_ != base::TimePoint{}; };
    has_listed_.wait_for(lock, options_.stop, has_list() ? kForAnother : kForTheFirst,
                         [this] { return !is_listing_; });
    if (!has_list()) throw NotListedYet();
    return listed_;
  }
  is_listing_ = true;
  lock.unlock();
  std::vector<Run> runs;
  std::exception_ptr failed;
  try {
    runs = list_();
  } catch (...) {
    failed = std::current_exception();
  }
  lock.lock();
  is_listing_ = false;
  has_listed_.notify_all();
  if (failed) std::rethrow_exception(failed);
  listed_at_ = base::Clock::now();
  return listed_ = std::move(runs);
}

/// Looks the run up in the list, so that only listed runs are opened, whatever the address says.
std::optional<Run> Site::find(const std::string& id) {
  // Browsers shorten /run/. to /run/, so an empty name also means the run that is the directory itself.
  const std::string asked = id.empty() ? "." : id;
  for (auto& run : runs(0))
    if (run.id == asked) return std::move(run);
  return std::nullopt;
}

std::shared_ptr<const Site::Report> Site::report_of(const Run& run) {
  std::shared_ptr<KeptReport> slot;
  {
    const std::lock_guard lock(report_mutex_);
    auto& found = reports_[run.id];
    if (!found) found = std::make_shared<KeptReport>();
    slot = found;
  }
  const std::lock_guard lock(slot->mutex);
  auto& kept = slot->report;
  const auto stamp = record_files(run.path).stamp;
  constexpr double kSecondsBetween = 5;
  const bool goes_on = run.state == RunState::running && !run.status.has_ended;
  if (kept && (kept->stamp == stamp || (goes_on && base::seconds_since(kept->made_at) < kSecondsBetween)))
    return kept;
  report::Document document;
  try {
    document = options_.document(run.path, goes_on);
  } catch (const base::Error& error) {
    document.title = "Paceline: " + run.id;
    document.warnings.push_back(run.state == RunState::running
                                    ? "Nothing was measured yet: this page fills as the run goes on."
                                    : std::string(error.what()));
  }
  auto made = std::make_shared<Report>();
  made->stamp = stamp;
  made->made_at = base::Clock::now();
  made->json = std::make_shared<const std::string>(report::to_json(document));
  const auto has_events = run.bytes > 0;
  made->page = std::make_shared<const std::string>(served_page(
      report::page_of(*made->json), has_events || run.state == RunState::running
                                        ? fmt::format("/events?run={}&from={}", url_text(run.id), run.bytes)
                                        : ""));
  return kept = made;
}

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host == "127.0.0.1";
}

std::string make_token() {
  std::array<std::uint8_t, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    base::fail(base::ErrorKind::device,
               "--token: the system provided no random numbers to make a token; give one");
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

bool is_same_token(std::string_view token, std::string_view given) {
  unsigned differs = token.size() == given.size() && !token.empty() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const char expected = token.empty() ? '\0' : token[i % token.size()];
    differs |=
        static_cast<unsigned>(static_cast<unsigned char>(expected) ^ static_cast<unsigned char>(given[i]));
  }
  return differs == 0;
}

std::string refusal(const HttpRequest& request, std::string_view token) {
  if (token.empty()) {
    if (is_loopback(without_port(request.host))) return "";
    return "this server answers only requests to 127.0.0.1 and localhost; to reach it from elsewhere start "
           "it with --host and a token";
  }
  constexpr std::string_view kBearer = "Bearer ";
  std::string_view given = request.authorization;
  if (given.starts_with(kBearer)) {
    given.remove_prefix(kBearer.size());
  } else {
    const auto asked = request.query.find("token");
    given = asked == request.query.end() ? std::string_view() : std::string_view(asked->second);
  }
  if (is_same_token(token, given)) return "";
  return "a token is needed: append ?token=TOKEN to the address, or send 'Authorization: Bearer TOKEN'; the server "
         "printed its address with it when it began, unless --token-file or PACELINE_TOKEN gave it";
}

}  // namespace paceline::serve

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/thread_pool.h"
#include "cli/commands/commands.h"
#include "cli/reports.h"
#include "cli/screen/screen.h"
#include "cluster/interrupt.h"
#include "measure/events.h"
#include "report/build.h"
#include "serve/http_server.h"
#include "serve/site.h"

namespace paceline::cli {
namespace {

namespace fs = std::filesystem;

/// Sorts records in the order in which the study reported its cells; by time alone, records of the same
/// second would be ordered by name.
void order_by_events(std::vector<measure::Record>& records, const fs::path& run) {
  std::map<std::string, std::size_t> places;
  std::size_t done = 0;
  measure::EventTail tail(run / measure::kEventsFile);
  for (auto lines = tail.read(); !lines.empty(); lines = tail.read())
    for (const auto& line : lines)
      if (const auto event = measure::event_from_json(line.text); event && event->name() == "cell_done")
        places.insert_or_assign(event->text("cell").value_or(""), ++done);
  const auto place = [&](const measure::Record& record) {
    const auto found = places.find(record.id);
    return found == places.end() ? done + 1 : found->second;
  };
  std::ranges::stable_sort(records, {}, place);
}

/// Makes the same report as the command that measured the records.
report::Document document_of(const fs::path& run, bool is_running) {
  const bool is_study = base::is_folder(run / "records");
  // Without the trainings of a running study, whose records are added when they are complete.
  auto [records, remarks] = read_records({is_study ? run / "records" : run});
  order_by_events(records, run);
  // Its record, rewritten after each epoch, says "interrupted" for the case that it is killed.
  for (measure::Record& record : records)
    if (is_running && record.kind == "train" && record.status == "interrupted") {
      record.status = "running";
      record.reason.clear();
    }
  return report::build(records, {.title = "",
                                 .command = records.front().command,
                                 .remarks = remarks,
                                 .emulated = emulated_link(records)});
}

constexpr std::size_t kShortestToken = 8;

/// A token and whether it was made here, so that the user learns it from the printed address alone.
struct Token {
  std::string text;
  bool is_made = false;
};

Token token_of(const Settings::Serve& asked) {
  if (asked.has_no_token) {
    if (!asked.token_file.empty() || !asked.token.empty())
      base::fail(ErrorKind::usage, "--no-token and {} contradict each other; give one of them",
                 asked.token.empty() ? "--token-file" : "--token");
    if (!serve::is_loopback(asked.host))
      base::fail(
          ErrorKind::usage,
          "--no-token: everyone who reaches {} could read all runs; leave it out, or serve at 127.0.0.1",
          asked.host);
    return {};
  }
  if (!asked.token.empty()) return {asked.token};
  if (!asked.token_file.empty()) return {base::read_secret(asked.token_file, "--token-file", kShortestToken)};
  if (const char* const variable = std::getenv("PACELINE_TOKEN"); variable != nullptr && *variable != '\0') {
    const std::string token = variable;
    if (token.size() < kShortestToken)
      base::fail(ErrorKind::usage,
                 "the environment variable PACELINE_TOKEN must have at least {} characters, "
                 "but has {}",
                 kShortestToken, token.size());
    return {token};
  }
  return {.text = serve::make_token(), .is_made = true};
}

/// Ends the process when a stop was requested and a request in progress, such as the report of a large
/// record, does not end soon. The server only reads, so nothing is lost.
class PromptEnd {
 public:
  explicit PromptEnd(std::stop_token stop)
      : thread_([stop = std::move(stop)](const std::stop_token& over) {
          while (!stop.stop_requested())
            if (base::stopped_within(over, kLook)) return;
          if (!base::stopped_within(over, kPatience)) std::_Exit(0);
        }) {}

 private:
  static constexpr std::chrono::milliseconds kLook{50}, kPatience{600};
  std::jthread thread_;
};

}  // namespace

int serve_command(const Settings& settings) {
  const auto& asked = settings.serve;
  if (serve::has_http_server() && !base::is_folder(asked.directory))
    base::fail(ErrorKind::data, "serve: there is no directory {}; give the one where runs are",
               asked.directory.string());
  Screen screen(false);
  const bool is_private = serve::is_loopback(asked.host);
  const auto token = token_of(asked);
  const cluster::Interrupt interrupt([] { return true; });
  const PromptEnd prompt_end(interrupt.token());
  serve::Site site({.directory = asked.directory,
                    .token = token.text,
                    .document = document_of,
                    .stop = interrupt.token()});
  const auto server =
      serve::open_http_server(asked.host == "localhost" ? "127.0.0.1" : asked.host, asked.port, {},
                              [&site](const serve::HttpRequest& request) { return site.answer(request); });
  const auto host = asked.host.find(':') == std::string::npos ? asked.host : fmt::format("[{}]", asked.host);
  screen.say("serving {} at http://{}:{}/{}", asked.directory.string(), host, server->port(),
             token.is_made ? "?token=" + token.text : "");
  if (!is_private)
    screen.say(
        "anyone who has the token and can reach this address can read all runs; nothing is "
        "encrypted");
  server->run(interrupt.token());
  return 0;
}

}  // namespace paceline::cli

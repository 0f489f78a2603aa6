#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
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
  std::error_code unreadable;
  const bool is_study = fs::is_directory(run / "records", unreadable);
  // Without the trainings of a running study, whose records are added when they are complete.
  auto [records, remarks] = read_records({is_study ? run / "records" : run});
  order_by_events(records, run);
  // Its record, rewritten after each epoch, says "interrupted" for the case that it is killed.
  for (measure::Record& record : records)
    if (is_running && record.kind == "train" && record.status == "interrupted") {
      record.status = "running";
      record.reason.clear();
    }
  return report::build(records, {.title = "", .command = records.front().command, .remarks = remarks});
}

}  // namespace

int serve_command(const Settings& settings) {
  const auto& asked = settings.serve;
  std::error_code unreadable;
  if (serve::has_http_server() && !fs::is_directory(asked.directory, unreadable))
    base::fail(base::ErrorKind::data, "serve: there is no directory {}; give the one where runs are",
               asked.directory.string());
  Screen screen(false);
  const bool is_private = serve::is_loopback(asked.host);
  const bool makes_token = !is_private && asked.token.empty();
  const auto token = makes_token ? serve::make_token() : asked.token;
  const cluster::Interrupt interrupt([] { return true; });
  serve::Site site(
      {.directory = asked.directory, .token = token, .document = document_of, .stop = interrupt.token()});
  serve::HttpServer server(asked.host == "localhost" ? "127.0.0.1" : asked.host, asked.port, {},
                           [&site](const serve::HttpRequest& request) { return site.answer(request); });
  const auto host = asked.host.find(':') == std::string::npos ? asked.host : fmt::format("[{}]", asked.host);
  screen.say(fmt::format("serving {} at http://{}:{}/{}", asked.directory.string(), host, server.port(),
                         makes_token ? "?token=" + token : ""));
  if (!is_private)
    screen.explain(
        "anyone who has the token and can reach this address can read all runs; nothing is "
        "encrypted");
  server.run(interrupt.token());
  return 0;
}

}  // namespace paceline::cli

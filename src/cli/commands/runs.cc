#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/reports.h"
#include "cli/screen/screen.h"
#include "measure/environment.h"
#include "report/text.h"
#include "serve/run_book.h"

namespace paceline::cli {
namespace {

namespace fs = std::filesystem;
using serve::Run;
using serve::RunState;

constexpr const char* kDirectory = "paceline-out";

std::string columns(const Run& run, std::size_t name_width, double now) {
  return fmt::format("{:<{}}  {:<11}  {:>7} ago  {:<28}  {}", base::visible(run.id), name_width,
                     name(run.state), serve::age(now - run.changed_at), serve::progress_text(run.status),
                     serve::best_text(run.status));
}

nlohmann::ordered_json json(const Run& run) {
  nlohmann::ordered_json one{{"id", run.id},
                             {"path", run.path.string()},
                             {"state", std::string(name(run.state))},
                             {"kind", run.status.kind},
                             {"model", run.status.model},
                             {"data", run.status.data},
                             {"command", run.status.command},
                             {"changed_at", run.changed_at},
                             {"updates_done", run.status.updates_done},
                             {"updates", run.status.updates},
                             {"cells_done", run.status.cells_done},
                             {"cells", run.status.cells}};
  const auto add = [&](const char* key, const std::optional<double>& value) {
    one[key] = value ? nlohmann::ordered_json(*value) : nullptr;
  };
  add("images_per_s", run.status.images_per_s);
  add("best_images_per_s", run.status.best_images_per_s);
  add("best_accuracy", run.status.best_accuracy);
  return one;
}

void print_json(const std::vector<Run>& runs) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& run : runs) list.push_back(json(run));
  std::printf("%s\n", list.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

/// The run in directory `path`, or in `path` below paceline-out.
///
/// Errors   Error(data): it is not a run, or contains several
Run find_run(const fs::path& path) {
  const fs::path folder = base::is_there(path) || path.is_absolute() ? path : fs::path(kDirectory) / path;
  if (!base::is_folder(folder))
    base::fail(
        ErrorKind::data,
        "runs: there is no directory {}; 'paceline runs list DIR' shows the runs below another directory",
        path.string());
  auto runs = serve::RunBook(folder).list();
  if (runs.size() == 1 && runs.front().id == ".") return std::move(runs.front());
  if (runs.empty())
    base::fail(ErrorKind::data, "runs: no run was made in {}: it holds neither events nor records",
               folder.string());
  base::fail(ErrorKind::data,
             "runs: {} is not a run but holds {}, for example {}; name those that "
             "are meant",
             folder.string(), runs.size(), (folder / runs.front().id).string());
}

void list(const Settings& settings, Screen& screen) {
  const fs::path directory = settings.runs.paths.empty() ? fs::path(kDirectory) : settings.runs.paths.front();
  const auto runs = serve::RunBook(directory).list();
  if (settings.json) return print_json(runs);
  if (runs.empty())
    return screen.say("no run below {}; 'paceline runs list DIR' looks below another directory",
                      directory.string());
  std::size_t width = 0;
  for (const auto& run : runs) width = std::max(width, run.id.size());
  for (const auto& run : runs) screen.say(columns(run, width, measure::unix_now()));
}

void show(const Run& run, Screen& screen) {
  const auto& status = run.status;
  const auto line = [&](const char* what, const std::string& value) {
    if (!value.empty()) screen.say("  {:<10} {}", what, value);
  };
  screen.say(base::visible(run.path.string()));
  line("state", fmt::format("{}{}{}", name(run.state), status.reason.empty() ? "" : ": ", status.reason));
  line("kind", status.kind);
  line("model", status.model);
  line("data", status.data);
  line("command", status.command);
  line("host", status.host);
  line("progress", serve::progress_text(status));
  line("cell", status.cell);
  line("loss", status.loss ? fmt::format("{:.4f}", *status.loss) : "");
  line("speed", status.images_per_s ? report::integer(*status.images_per_s) + " images/s" : "");
  line("best", serve::best_text(status));
  line("best cell", status.best_cell);
  line("last event", serve::age(measure::unix_now() - run.changed_at) + " ago");
}

bool is_confirmed(const std::vector<Run>& runs) {
  if (::isatty(STDIN_FILENO) == 0)
    base::fail(ErrorKind::usage, "runs rm: there is no terminal to ask; give --yes to remove {}",
               runs.size() == 1 ? runs.front().path.string() : fmt::format("{} runs", runs.size()));
  for (const auto& run : runs)
    std::fprintf(stderr, "%s: %s, %s\n", run.path.c_str(), std::string(name(run.state)).c_str(),
                 serve::progress_text(run.status).c_str());
  std::fprintf(stderr, "remove %s with all that is in %s? [y/N] ", runs.size() == 1 ? "it" : "them",
               runs.size() == 1 ? "it" : "them");
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes" || answer == "Y";
}

void remove(const Settings& settings, Screen& screen) {
  std::vector<Run> runs;
  for (const auto& path : settings.runs.paths) runs.push_back(find_run(path));
  for (const auto& run : runs)
    if (run.state == RunState::running)
      base::fail(ErrorKind::usage, "runs rm: {} is in progress{}; stop it first", run.path.string(),
                 run.status.host.empty()
                     ? ""
                     : fmt::format(" (process {} on {})", run.status.process, run.status.host));
  if (!settings.runs.yes && !is_confirmed(runs)) return screen.say("nothing was removed");
  for (const auto& run : runs) {
    {
      // Locks the directory: a run that begins now is refused, and one that is running is detected.
      const OutputDirectory mine(run.path);
      std::error_code failed;
      fs::remove_all(run.path, failed);
      if (failed)
        base::fail(ErrorKind::data, "runs rm {}: {}; some of it may be gone", run.path.string(),
                   failed.message());
    }
    screen.say("removed {}", run.path.string());
  }
}

}  // namespace

int runs_command(const Settings& settings) {
  Screen screen(settings.json);
  const auto& runs = settings.runs;
  if (settings.action == "list") {
    list(settings, screen);
  } else if (settings.action == "rm") {
    remove(settings, screen);
  } else {
    std::vector<Run> found;
    for (const auto& path : runs.paths) found.push_back(find_run(path));
    if (settings.json) print_json(found);
    if (!settings.json)
      for (const auto& run : found) show(run, screen);
  }
  return 0;
}

}  // namespace paceline::cli

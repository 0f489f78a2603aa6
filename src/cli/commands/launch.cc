#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/program_path.h"
#include "base/topology.h"
#include "cli/child.h"
#include "cli/commands/commands.h"
#include "cli/log.h"
#include "cli/restart.h"
#include "cli/stop_request.h"
#include "cli/values.h"
#include "measure/environment.h"

namespace paceline::cli {

int launch_command(const Settings& settings) {
  LaunchOptions options = settings.launch;
  const char* tasks = std::getenv("SLURM_NTASKS");  // inside an allocation: as many as it was asked for
  if (options.processes == 0 && options.hosts.empty() && tasks != nullptr)
    options.processes = static_cast<int>(whole_number(tasks, 1, 100000));
  const bool trains = settings.child.front() == "train";  // the cells of a study are kept in any case
  if (options.restarts > 0 && trains && settings.child_out.empty())
    base::fail(
        base::ErrorKind::usage,
        "--restarts goes on from the last checkpoint, and needs to know where it is: train ... --out DIR");
  options.as_root = ::geteuid() == 0;
  options.oversubscribe =
      options.hosts.empty() && tasks == nullptr && options.processes > base::usable_cores();
  const auto program = base::program_path().string();
  std::printf("%s\n", shell_line(mpirun_line(options, program, settings.child)).c_str());
  std::fflush(stdout);
  if (options.print) return 0;
  const Ear ear;
  options.ear = ear.address();
  const auto line = mpirun_line(options, program, settings.child);
  const auto started = measure::utc_now();
  const StopRequest stop;
  RestartRule rule{.restarts = options.restarts,
                   .grace = std::chrono::seconds(options.grace_s),
                   .progress = [&] { return progress_of(settings.child_out); },
                   .again = {},
                   .wait = {}};
  rule.again = [&](int attempt, const Ended& ended) {
    const auto lost = lost_text(measure::unix_now(), ended);
    if (trains && is_complete(settings.child_out, started)) {
      std::fprintf(stderr, "paceline: the training was complete before: nothing is left to restart\n");
      return std::vector<std::string>();
    }
    LaunchOptions left = on_hosts_left(options, [&](const std::string& host) {
      return run_line(reach_line(options, host), stop, rule.grace).code == 0;
    });
    left.lost = lost;
    if (left.hosts != options.hosts)
      std::fprintf(stderr, "paceline: of the hosts %s, %s answer: fewer processes go on\n",
                   options.hosts.c_str(), left.hosts.c_str());
    const auto words = trains ? restart_words(settings.child_out) : std::vector<std::string>();
    std::fprintf(stderr, "paceline: restart %d of %d, %s\n", attempt, options.restarts,
                 !trains         ? "with the cells that are not measured yet"
                 : words.empty() ? "from the beginning: there is no checkpoint yet"
                                 : "from the last checkpoint");
    auto again = mpirun_line(left, program, settings.child);
    again.insert(again.end(), words.begin(), words.end());
    return again;
  };
  return exit_code_of_launch(run_with_restarts(line, stop, rule));
}

}  // namespace paceline::cli

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/module.h"
#include "base/program_path.h"
#include "base/topology.h"
#include "base/values.h"
#include "cli/commands/commands.h"
#include "cli/plan.h"
#include "cluster/child.h"
#include "cluster/gpu_table.h"
#include "cluster/here.h"
#include "cluster/in_path.h"
#include "cluster/log.h"
#include "cluster/restart.h"
#include "cluster/stop_request.h"
#include "comm/gloo/load.h"
#include "comm/interface.h"
#include "comm/launch.h"
#include "comm/mpi/load.h"
#include "measure/environment.h"

namespace paceline::cli {

namespace {

Surroundings look_around() {
  const bool in_job = std::getenv("SLURM_JOB_ID") != nullptr && std::getenv("SLURM_STEP_ID") == nullptr;
  std::error_code ignored;
  return {.has_mpirun = !in_path("mpirun").empty() &&
                        std::filesystem::exists(base::module_path(comm::mpi::kModule), ignored),
          .in_allocation = in_job && !in_path("srun").empty()};
}

/// Takes options that were not given from the environment of a Slurm allocation.
void take_allocation(LaunchOptions& options) {
  const char* const tasks = std::getenv("SLURM_NTASKS");  // the requested number of tasks
  if (options.processes == 0 && options.hosts.empty() && tasks != nullptr)
    options.processes = static_cast<int>(base::whole_number(tasks, 1, 100000));
  if (options.by != LaunchBy::srun) return;
  const char* const cores = std::getenv("SLURM_CPUS_PER_TASK");
  if (cores != nullptr) options.cores_per_task = static_cast<int>(base::whole_number(cores, 1, 100000));
  std::error_code ignored;
  options.has_pmix =
      std::filesystem::exists(base::module_path(comm::mpi::kModule), ignored) && srun_has_pmix();
}

/// Sets one worker for each GPU of this host if the number was not given.
void take_gpus(LaunchOptions& options, const std::string& device) {
  if (device != "cuda" || options.processes > 0 || !options.hosts.empty() || options.by == LaunchBy::srun)
    return;
  options.processes = number_of_gpus();
  if (options.processes > 0)
    std::fprintf(stderr, "paceline: --device cuda: --processes %d, one for each GPU of this host\n",
                 options.processes);
}

/// Checks before any process is started that the library which joins them is installed; otherwise each would
/// report it.
void require_what_joins(const LaunchOptions& options) {
  if (options.by == LaunchBy::here || (options.by == LaunchBy::srun && !options.has_pmix))
    base::require_module(comm::gloo::kModule);
  else
    base::require_module(comm::mpi::kModule);
}

/// The command to start, with the network interface given to launch, which must exist if this host has
/// processes.
std::vector<std::string> child_of(const Settings& settings, const LaunchOptions& options) {
  auto words = settings.child;
  if (options.interface.empty()) return words;
  if (options.hosts.empty() && options.by != LaunchBy::srun) {
    try {
      (void)comm::address_of_interface(options.interface);
    } catch (const base::Error& error) {
      base::fail(base::ErrorKind::usage, "{}", error.what());  // reported once, and not as a lost process
    }
  }
  words.insert(words.begin() + 1, {"--interface", options.interface});
  return words;
}

/// The launcher's name, for sentences about its end.
std::string name_of_launcher(LaunchBy by) {
  if (by == LaunchBy::here) return "a process of the run";
  return by == LaunchBy::srun ? "srun" : "mpirun";
}

std::vector<std::string> launch_line_of(const LaunchOptions& options, const std::string& program,
                                        const std::vector<std::string>& words) {
  if (options.by == LaunchBy::here) return here_line(options, program, words);
  if (options.by == LaunchBy::srun) return srun_line(options, program, words);
  return mpirun_line(options, program, words);
}

/// mpirun takes variables as options, since its processes may be on other hosts; others inherit them.
void set_variables(const LaunchOptions& options) {
  if (options.by == LaunchBy::mpirun) return;
  ::setenv(kEar, options.ear.c_str(), 1);
  if (!options.lost.empty()) ::setenv(kLost, options.lost.c_str(), 1);
  if (options.by == LaunchBy::here)
    ::setenv(comm::kJobOfLaunch, fmt::format("{}.{:.0f}", ::getpid(), measure::unix_now()).c_str(), 1);
}

}  // namespace

int launch_command(const Settings& settings) {
  LaunchOptions options = settings.launch;
  options.interface = settings.interface;
  const auto program = base::program_path().string();
  if (options.by == LaunchBy::here && is_starter_here()) {
    std::vector<std::string> line{program};
    line.insert(line.end(), settings.child.begin(), settings.child.end());
    return run_here(line, options.processes);
  }
  options.by = choose_starter(options, look_around());
  take_allocation(options);
  if (!settings.has_child_workers) take_gpus(options, settings.child_device);
  const auto child = child_of(settings, options);
  const bool trains = settings.child.front() == "train";  // a study keeps its cells in any case
  if (options.restarts > 0 && trains && settings.child_out.empty())
    base::fail(
        base::ErrorKind::usage,
        "--restarts continues from the last checkpoint, so it must know where it is: train ... --out DIR");
  options.as_root = ::geteuid() == 0;
  options.oversubscribe = options.hosts.empty() && std::getenv("SLURM_NTASKS") == nullptr &&
                          options.processes > base::usable_cores();
  for (const auto& note : settings.notes) std::fprintf(stderr, "paceline: %s\n", note.c_str());
  const auto first = launch_line_of(options, program, child);
  std::printf("%s\n", options.by == LaunchBy::here ? here_in_shell(options, program, child).c_str()
                                                   : shell_line(first).c_str());
  std::fflush(stdout);
  if (options.print) return 0;
  if (settings.plan) return show_child_plan(settings, std::max(1, processes_of(options)), nodes_of(options));
  require_what_joins(options);
  const Ear ear(options.interface);
  options.ear = ear.address();
  set_variables(options);
  const auto line = launch_line_of(options, program, child);
  const auto started = measure::utc_now();
  const StopRequest stop;
  RestartRule rule{.launcher = name_of_launcher(options.by),
                   .restarts = options.restarts,
                   .grace = std::chrono::seconds(options.grace_s),
                   .progress = [&] { return progress_of(settings.child_out); },
                   .again = {},
                   .wait = {}};
  rule.again = [&](int attempt, const Ended& ended) {
    const auto lost = lost_text(measure::unix_now(), ended, name_of_launcher(options.by));
    if (trains && is_complete(settings.child_out, started)) {
      std::fprintf(stderr, "paceline: the training was complete before: nothing is left to restart\n");
      return std::vector<std::string>();
    }
    LaunchOptions left = on_hosts_left(options, [&](const std::string& host) {
      return run_line(reach_line(options, host), stop, rule.grace).code == 0;
    });
    left.lost = lost;
    if (left.hosts != options.hosts)
      std::fprintf(stderr,
                   "paceline: of the hosts %s, only %s answer: the run continues with fewer "
                   "processes\n",
                   options.hosts.c_str(), left.hosts.c_str());
    const auto words = trains ? restart_words(settings.child_out) : std::vector<std::string>();
    std::fprintf(stderr, "paceline: restart %d of %d, %s\n", attempt, options.restarts,
                 !trains         ? "with the cells that are not measured yet"
                 : words.empty() ? "from the beginning: there is no checkpoint yet"
                                 : "from the last checkpoint");
    set_variables(left);
    auto again = launch_line_of(left, program, child);
    again.insert(again.end(), words.begin(), words.end());
    return again;
  };
  return exit_code_of_launch(run_with_restarts(line, stop, rule));
}

}  // namespace paceline::cli

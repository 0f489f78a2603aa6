#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/shared_library.h"
#include "base/text.h"
#include "base/topology.h"
#include "cli/commands/commands.h"
#include "cli/plan.h"
#include "cli/screen/screen.h"
#include "cluster/child.h"
#include "cluster/gpu_table.h"
#include "cluster/interrupt.h"
#include "cluster/launch_line.h"
#include "cluster/log.h"
#include "cluster/passed_output.h"
#include "comm/gloo/load.h"
#include "comm/gloo/meeting_server.h"
#include "comm/launch.h"
#include "comm/line_socket.h"
#include "comm/mpi/load.h"
#include "measure/environment.h"

namespace paceline::cli {

namespace {

cluster::Surroundings look_around() {
  const bool in_job = std::getenv("SLURM_JOB_ID") != nullptr && std::getenv("SLURM_STEP_ID") == nullptr;
  return {.has_mpirun =
              !cluster::in_path("mpirun").empty() && base::is_there(base::module_path(comm::mpi::kModule)),
          .in_allocation = in_job && !cluster::in_path("srun").empty()};
}

/// Takes options that were not given from the environment of a Slurm allocation.
void take_allocation(cluster::LaunchOptions& options) {
  const char* const tasks = std::getenv("SLURM_NTASKS");  // the requested number of tasks
  if (options.processes == 0 && options.hosts.empty() && tasks != nullptr)
    options.processes = static_cast<int>(base::whole_number(tasks, 1, 100000));
  if (options.by != cluster::LaunchBy::srun) return;
  const char* const cores = std::getenv("SLURM_CPUS_PER_TASK");
  if (cores != nullptr) options.cores_per_task = static_cast<int>(base::whole_number(cores, 1, 100000));
  options.has_pmix = base::is_there(base::module_path(comm::mpi::kModule)) &&
                     cluster::run_in_shell("srun --mpi=list 2>&1").text.find("pmix") != std::string::npos;
}

/// Sets one worker for each GPU of this host if the number was not given.
void take_gpus(cluster::LaunchOptions& options, const std::string& device) {
  if (device != "cuda" || options.processes > 0 || !options.hosts.empty() ||
      options.by == cluster::LaunchBy::srun)
    return;
  options.processes = cluster::number_of_gpus();
  if (options.processes > 0)
    std::fprintf(stderr, "paceline: --device cuda: --processes %d, one for each GPU of this host\n",
                 options.processes);
}

/// Checks before any process is started that the library which joins them is installed; otherwise each would
/// report it.
void require_what_joins(const cluster::LaunchOptions& options) {
  if (options.by == cluster::LaunchBy::here || (options.by == cluster::LaunchBy::srun && !options.has_pmix))
    base::require_module(comm::gloo::kModule);
  else
    base::require_module(comm::mpi::kModule);
}

/// The command to start, with the network interface given to launch, which must exist if this host has
/// processes.
std::vector<std::string> child_of(const Settings& settings, const cluster::LaunchOptions& options) {
  auto words = settings.child;
  if (options.interface.empty()) return words;
  if (options.hosts.empty() && options.by != cluster::LaunchBy::srun) {
    try {
      (void)comm::address_of_interface(options.interface);
    } catch (const base::Error& error) {
      base::fail(ErrorKind::usage, "{}", error.what());  // reported once, and not as a lost process
    }
  }
  words.insert(words.begin() + 1, {"--interface", options.interface});
  return words;
}

/// The launcher's name, for sentences about its end.
std::string name_of_launcher(cluster::LaunchBy by) {
  if (by == cluster::LaunchBy::here) return "a process of the run";
  return by == cluster::LaunchBy::srun ? "srun" : "mpirun";
}

/// mpirun is told by options which variables processes on other hosts get; others inherit all.
void set_variables(const cluster::LaunchOptions& options) {
  ::setenv(cluster::kEar, options.ear.c_str(), 1);
  // Processes below mpirun write to a terminal of its own, whatever becomes of what they write.
  if (options.is_plain) ::setenv("NO_COLOR", "1", 1);
  if (options.by == cluster::LaunchBy::mpirun) return;
  if (!options.lost.empty()) ::setenv(cluster::kLost, options.lost.c_str(), 1);
  // In the environment, which other users cannot read; a command line they can.
  if (const char* const secret = std::getenv(comm::kSecret); secret == nullptr || *secret == '\0')
    ::setenv(comm::kSecret, comm::gloo::make_nonce().c_str(), 1);
  if (options.by == cluster::LaunchBy::here)
    ::setenv(comm::kJobOfLaunch, fmt::format("{}.{:.0f}", ::getpid(), measure::unix_now()).c_str(), 1);
}

/// A folder for temporary files (TMPDIR) that is removed at the end, for an mpirun on this host. Without it
/// all of a user's mpirun keep theirs in one folder, which each removes when it finds it empty: now and then
/// one that starts at that moment fails (Open MPI 4.1).
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code none;
    auto name = (std::filesystem::temp_directory_path(none) / "paceline-mpirun-XXXXXX").string();
    if (none || ::mkdtemp(name.data()) == nullptr) return;  // mpirun says what it cannot write
    path_ = name;
    ::setenv("TMPDIR", path_.c_str(), 1);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

 private:
  std::string path_;
};

}  // namespace

int launch_command(const Settings& settings) {
  cluster::LaunchOptions options = settings.launch;
  options.interface = settings.interface;
  const auto program = base::program_path().string();
  if (options.by == cluster::LaunchBy::here && cluster::is_starter_here()) {
    std::vector<std::string> line{program};
    line.insert(line.end(), settings.child.begin(), settings.child.end());
    return cluster::run_here(line, options.processes);
  }
  options.by = cluster::choose_starter(options, look_around());
  take_allocation(options);
  if (!settings.has_child_workers) take_gpus(options, settings.child_device);
  const auto child = child_of(settings, options);
  const bool trains = settings.child.front() == "train";  // a study keeps its cells in any case
  if (options.restarts > 0 && trains && settings.child_out.empty())
    base::fail(
        ErrorKind::usage,
        "--restarts continues from the last checkpoint, so it must know where it is: train ... --out DIR");
  options.as_root = ::geteuid() == 0;
  options.oversubscribe = options.hosts.empty() && std::getenv("SLURM_NTASKS") == nullptr &&
                          options.processes > base::usable_cores();
  for (const auto& note : settings.notes) std::fprintf(stderr, "paceline: %s\n", note.c_str());
  const auto first = cluster::launch_line(options, program, child);
  const auto shown = options.by == cluster::LaunchBy::here ? cluster::here_in_shell(options, program, child)
                                                           : cluster::shell_line(first);
  const auto width = static_cast<std::size_t>(std::max(0, terminal_width(STDOUT_FILENO, 0) - 2));
  std::printf("%s\n", fmt::format("{}", fmt::join(base::command_lines(shown, width), "\n  ")).c_str());
  std::fflush(stdout);
  if (options.print) return 0;
  require_what_joins(options);
  if (settings.plan)
    return show_child_plan(settings, std::max(1, cluster::processes_of(options)), cluster::nodes_of(options));
  const bool may_use_other_hosts =
      cluster::may_use_other_hosts(options, base::process_environment(), base::host_name());
  const cluster::Ear ear(options.interface, !may_use_other_hosts);
  options.ear = ear.address();
  options.is_plain = ::isatty(STDOUT_FILENO) == 0;
  set_variables(options);
  const auto line = cluster::launch_line(options, program, child);
  const auto started = measure::utc_now();
  const cluster::StopRequest stop;
  std::optional<TemporaryFolder> folder;
  if (options.by == cluster::LaunchBy::mpirun && !may_use_other_hosts) folder.emplace();
  // Processes of --by here are this program, which does not wait for its readers.
  std::optional<cluster::PassedOutput> output;
  if (options.by != cluster::LaunchBy::here) output.emplace();
  cluster::RestartRule rule{.launcher = name_of_launcher(options.by),
                            .restarts = options.restarts,
                            .grace = std::chrono::seconds(options.grace_s),
                            .progress = [&] { return cluster::progress_of(settings.child_out); },
                            .again = {},
                            .wait = {},
                            .output = output ? &*output : nullptr};
  rule.again = [&](int attempt, const cluster::Ended& ended) {
    const auto lost = cluster::lost_text(measure::unix_now(), ended, name_of_launcher(options.by));
    if (trains && cluster::is_complete(settings.child_out, started)) {
      (void)cluster::print_line("the training was complete before: nothing is left to restart");
      return std::vector<std::string>();
    }
    cluster::LaunchOptions left = cluster::on_hosts_left(options, [&](const std::string& host) {
      return cluster::run_line(cluster::reach_line(options, host), stop, rule.grace).code == 0;
    });
    left.lost = lost;
    if (left.hosts != options.hosts)
      (void)cluster::print_line(
          fmt::format("of the hosts {}, only {} answer: the run continues with fewer processes",
                      options.hosts, left.hosts));
    const auto words = trains ? cluster::restart_words(settings.child_out) : std::vector<std::string>();
    (void)cluster::print_line(fmt::format("restart {} of {}, {}", attempt, options.restarts,
                                          !trains         ? "with the cells that are not measured yet"
                                          : words.empty() ? "from the beginning: there is no checkpoint yet"
                                                          : "from the last checkpoint"));
    set_variables(left);
    auto again = cluster::launch_line(left, program, child);
    again.insert(again.end(), words.begin(), words.end());
    return again;
  };
  return cluster::exit_code_of_launch(cluster::run_with_restarts(line, stop, rule));
}

}  // namespace paceline::cli

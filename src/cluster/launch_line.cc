#include "cluster/launch_line.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "cluster/child.h"
#include "cluster/log.h"
#include "comm/line_socket.h"

namespace paceline::cluster {
namespace {

constexpr std::chrono::seconds kToSayIt{10}, kToStop{5};
constexpr std::chrono::milliseconds kLookForEnds{20};

/// A port of this host that is free now. Another program may take it before process 0 does; the processes
/// then meet at the next one (comm::Launch::meeting_ports).
std::uint16_t free_port() {
  comm::Socket listener;
  return comm::listen_anywhere(listener, "", true).port;
}

/// Runs in the child before the program of process `process`.
void prepare_process(int process, pid_t starter) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // ends this process if the starter is killed
  if (::getppid() != starter) ::_exit(128 + SIGTERM);
  const auto number = std::to_string(process);
  ::setenv("RANK", number.c_str(), 1);
  ::setenv("LOCAL_RANK", number.c_str(), 1);
  if (process > 0) {
    const int nothing = ::open("/dev/null", O_RDONLY);
    if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  }
}

class ProcessesHere {
 public:
  ProcessesHere(const std::vector<std::string>& line, int processes) {
    for (int process = 0; process < processes; ++process) {
      const auto [id, error] =
          start_program(line, [process, starter = ::getpid()] { prepare_process(process, starter); });
      if (id > 0) running_[id] = process;
      if (error == 0) continue;
      signal_all(SIGKILL);
      base::fail(base::ErrorKind::comm, "launch: process {} of {} could not be started: {}", process,
                 processes, std::strerror(error));
    }
  }

  int wait() {
    while (!running_.empty()) {
      int status = 0;
      const pid_t ended = ::waitpid(-1, &status, WNOHANG);
      if (ended > 0)
        note(ended, status);
      else
        std::this_thread::sleep_for(kLookForEnds);
      if (error_) end_the_others();
    }
    return error_ ? *error_ : stopped_;
  }

 private:
  void note(pid_t ended, int status) {
    const auto found = running_.find(ended);
    if (found == running_.end()) return;
    const int process = found->second;
    running_.erase(found);
    const int code = code_of(status);
    const bool was_stopped = code == 128 + SIGHUP || code == 128 + SIGINT || code == 128 + SIGTERM;
    if (was_stopped && stopped_ == 0) stopped_ = code;
    if (code == 0 || was_stopped || error_) return;
    error_ = code;
    error_at_ = base::Clock::now();
    if (WIFSIGNALED(status))
      log_line(fmt::format("process {} of the run, with the id {}, was ended by signal {} ({})", process,
                           ended, WTERMSIG(status), ::strsignal(WTERMSIG(status))));
  }

  void end_the_others() {
    const auto passed = base::Clock::now() - error_at_;
    if (passed >= kToSayIt && !is_asked_) {
      is_asked_ = true;
      signal_all(SIGTERM);
    }
    if (passed >= kToSayIt + kToStop && !is_forced_) {
      is_forced_ = true;
      signal_all(SIGKILL);
    }
  }

  void signal_all(int signal) const {
    for (const auto& [id, process] : running_) ::kill(id, signal);
  }

  std::map<pid_t, int> running_;  ///< [process id]: its number
  std::optional<int> error_;      ///< the first code of one
  int stopped_ = 0;
  base::TimePoint error_at_{};
  bool is_asked_ = false, is_forced_ = false;
};

/// The places of "a:2": 2. A host without a number has one.
int places_on(const std::string& host) {
  const auto colon = host.find(':');
  const auto name = host.substr(0, colon);
  constexpr const char *kBegins = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
                       *kMore = "._-@";
  // A name that begins with '-' would be an option of ssh.
  if (name.find_first_of(kBegins) != 0 ||
      name.find_first_not_of(std::string(kBegins) + kMore) != std::string::npos)
    base::fail(
        base::ErrorKind::usage,
        "must be a list such as a:2,b:2 (a name of letters, digits, '.', '-' and '_', and its processes), got '{}'",
        host);
  if (colon == std::string::npos) return 1;
  return static_cast<int>(
      base::whole_number_in(host, "number of processes", host.substr(colon + 1), 1, 4096));
}

/// The places of "a:2,b:2": 4.
int places_of(const std::string& hosts) {
  int places = 0;
  try {
    for (const auto& host : base::parts(hosts)) places += places_on(host);
  } catch (const base::Error& error) {
    base::fail(base::ErrorKind::usage, "--hosts {}", error.what());
  }
  return places;
}

/// Whether "me@node1.site:2" is the host that calls itself `own`, with or without its domain.
bool is_host_itself(std::string host, std::string_view own) {
  host = host.substr(host.find('@') + 1);
  host.resize(std::min(host.size(), host.find(':')));
  const std::string_view name = host;
  return !comm::loopback_of(host).empty() || name == own || name.substr(0, name.find('.')) == own ||
         name == own.substr(0, own.find('.'));
}

/// Variables that name files from which mpirun takes its hosts, one at the beginning of each line.
constexpr std::array kHostFiles{"PBS_NODEFILE", "PE_HOSTFILE", "LSB_DJOB_HOSTFILE",
                                "OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile"};

int number_of_processes(const LaunchOptions& options) {
  if (const int processes = processes_of(options); processes > 0) return processes;
  base::fail(
      base::ErrorKind::usage,
      "launch needs a number of processes, as in 'paceline launch --processes 4 -- train ...', or hosts with "
      "the number of processes on each, as in 'paceline launch --hosts hostA:2,hostB:2 -- train ...'");
}

std::vector<std::string> srun_line(const LaunchOptions& options, const std::string& program) {
  std::vector<std::string> line{"srun", options.has_pmix ? "--mpi=pmix" : "--mpi=none",
                                "--kill-on-bad-exit=1",
                                fmt::format("--ntasks={}", number_of_processes(options))};
  if (options.cores_per_task > 0) line.push_back(fmt::format("--cpus-per-task={}", options.cores_per_task));
  line.push_back(program);
  return line;
}

std::vector<std::string> here_line(const LaunchOptions& options, const std::string& program) {
  return {program, "launch", "--by", "here", "--processes", std::to_string(number_of_processes(options)),
          "--"};
}

std::vector<std::string> mpirun_line(const LaunchOptions& options, const std::string& program) {
  const int processes = number_of_processes(options);
  if (const int places = options.hosts.empty() ? 0 : places_of(options.hosts);
      places > 0 && places < processes)
    base::fail(base::ErrorKind::usage, "--hosts {} has places for {} processes, and --processes is {}",
               options.hosts, places, processes);
  // --quiet: Paceline itself reports errors, once. The second option gives the first process time to write
  // its record when another process is lost.
  std::vector<std::string> line{
      "mpirun", "--quiet", "--mca", "odls_base_sigkill_timeout", "4", "-np", std::to_string(processes)};
  if (!options.hosts.empty()) line.insert(line.end(), {"--host", options.hosts});
  // mpirun would bind each of two processes to one core, even on a host with eight. Paceline binds workers
  // itself.
  line.insert(line.end(), {"--bind-to", "none"});
  if (!options.interface.empty())
    line.insert(line.end(), {"--mca", "btl_tcp_if_include", options.interface, "--mca", "oob_tcp_if_include",
                             options.interface});
  if (options.oversubscribe) line.push_back("--oversubscribe");
  if (options.as_root) line.push_back("--allow-run-as-root");
  if (!options.lost.empty()) line.insert(line.end(), {"-x", fmt::format("{}={}", kLost, options.lost)});
  // By name: every user of the host can read a command line, and the address has the token of the messages.
  if (!options.ear.empty()) line.insert(line.end(), {"-x", kEar});
  if (options.is_plain && !options.hosts.empty()) line.insert(line.end(), {"-x", "NO_COLOR"});
  line.push_back(program);
  return line;
}

}  // namespace

bool is_starter_here() {
  // A variable left in the user's environment does not name this process's parent.
  const char* const job = std::getenv(comm::kJobOfLaunch);
  return job != nullptr && std::strtol(job, nullptr, 10) == ::getppid();
}

int run_here(const std::vector<std::string>& line, int processes) {
  // A new name for each try, so that processes left over from an earlier try are not accepted.
  const char* const launch = std::getenv(comm::kJobOfLaunch);
  const auto job = fmt::format("{}.{}", launch == nullptr ? "" : launch, ::getpid());
  for (const auto& [name, value] : {std::pair<const char*, std::string>{comm::kJobOfLaunch, job},
                                    {"WORLD_SIZE", std::to_string(processes)},
                                    {"MASTER_ADDR", "127.0.0.1"},
                                    {"MASTER_PORT", std::to_string(free_port())}})
    ::setenv(name, value.c_str(), 1);
  return ProcessesHere(line, processes).wait();
}

std::string shell_line(const std::vector<std::string>& words) {
  return base::joined(words, " ", base::shell_word);
}

int processes_of(const LaunchOptions& options) {
  if (options.processes > 0) return options.processes;
  return options.hosts.empty() ? 0 : places_of(options.hosts);
}

int nodes_of(const LaunchOptions& options) {
  return options.hosts.empty() ? 1 : static_cast<int>(base::parts(options.hosts).size());
}

bool may_use_other_hosts(const LaunchOptions& options, const comm::EnvironmentLookup& environment,
                         std::string_view own) {
  if (options.by == LaunchBy::here) return false;
  const auto value = [&](const char* name) -> std::string {
    const char* const text = environment(name);
    return text == nullptr ? "" : text;
  };
  const auto is_other = [&](const std::string& host) { return !is_host_itself(host, own); };
  if (!options.hosts.empty()) return std::ranges::any_of(base::parts(options.hosts), is_other);
  // Slurm writes one node without brackets or commas. A heterogeneous job has several such lists.
  if (!value("SLURM_JOB_ID").empty())
    return !value("SLURM_HET_SIZE").empty() || is_other(value("SLURM_JOB_NODELIST"));
  if (options.by == LaunchBy::srun) return true;
  return std::ranges::any_of(kHostFiles, [&](const char* variable) {
    const auto name = value(variable);
    if (name.empty()) return false;
    std::ifstream file(name);
    bool has_other = !file;
    for (std::string line; !has_other && std::getline(file, line);) {
      line.resize(std::min(line.size(), line.find_first_of(" \t\r#")));
      has_other = !line.empty() && is_other(line);
    }
    return has_other;
  });
}

LaunchBy choose_starter(const LaunchOptions& options, const Surroundings& around) {
  if (!options.hosts.empty() && (options.by == LaunchBy::srun || options.by == LaunchBy::here))
    base::fail(base::ErrorKind::usage, "--hosts {} is for mpirun, and {}; leave one of them out",
               options.hosts,
               options.by == LaunchBy::here ? "--by here starts all on this host"
                                            : "--by srun takes the hosts of the allocation");
  if (options.by != LaunchBy::automatic) return options.by;
  if (!options.hosts.empty()) return LaunchBy::mpirun;
  if (around.in_allocation) return LaunchBy::srun;
  return around.has_mpirun ? LaunchBy::mpirun : LaunchBy::here;
}

std::vector<std::string> launch_line(const LaunchOptions& options, const std::string& program,
                                     const std::vector<std::string>& words) {
  auto line = options.by == LaunchBy::here   ? here_line(options, program)
              : options.by == LaunchBy::srun ? srun_line(options, program)
                                             : mpirun_line(options, program);
  line.insert(line.end(), words.begin(), words.end());
  return line;
}

std::string here_in_shell(const LaunchOptions& options, const std::string& program,
                          const std::vector<std::string>& words) {
  const int processes = number_of_processes(options);
  std::vector<std::string> line{program};
  line.insert(line.end(), words.begin(), words.end());
  return fmt::format(
      "for rank in $(seq 0 {}); do RANK=$rank LOCAL_RANK=$rank WORLD_SIZE={} MASTER_ADDR=127.0.0.1 "
      "MASTER_PORT=29500 {} & done; wait",
      processes - 1, processes, shell_line(line));
}

std::vector<std::string> reach_line(const LaunchOptions& options, const std::string& host) {
  std::vector<std::string> line{"timeout", "30", "mpirun", "--quiet", "-np", "1", "--host", host};
  if (options.as_root) line.push_back("--allow-run-as-root");
  line.push_back("true");
  return line;
}

LaunchOptions on_hosts_left(LaunchOptions options,
                            const std::function<bool(const std::string& host)>& answers) {
  if (options.hosts.empty()) return options;
  std::string left;
  for (const auto& entry : base::parts(options.hosts))
    if (answers(entry.substr(0, entry.find(':')))) left += (left.empty() ? "" : ",") + entry;
  if (left.empty())
    base::fail(base::ErrorKind::comm,
               "launch: none of the hosts {} answers; the run can be resumed when they do", options.hosts);
  const int places = places_of(left);
  if (options.processes > places) options.processes = places;
  options.hosts = left;
  return options;
}

}  // namespace paceline::cluster

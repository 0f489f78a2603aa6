#include "cluster/launch_line.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/shell_word.h"
#include "base/values.h"
#include "cluster/log.h"
#include "cluster/restart.h"

namespace paceline::cluster {
namespace {

/// The places of "a:2": 2. A host without a number has one.
int places_on(const std::string& host) {
  const auto colon = host.find(':');
  if (colon == 0 || host.find_first_of(" \t'\"") != std::string::npos)
    base::fail(base::ErrorKind::usage, "must be a list such as a:2,b:2 (a name and its processes), got '{}'",
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

}  // namespace

std::string shell_line(const std::vector<std::string>& words) {
  std::string line;
  for (const auto& word : words) {
    if (!line.empty()) line += ' ';
    line += base::shell_word(word);
  }
  return line;
}

namespace {

[[noreturn]] void refuse_no_number() {
  base::fail(
      base::ErrorKind::usage,
      "launch needs a number of processes, as in 'paceline launch --processes 4 -- train ...', or hosts with "
      "the number of processes on each, as in 'paceline launch --hosts hostA:2,hostB:2 -- train ...'");
}

}  // namespace

int processes_of(const LaunchOptions& options) {
  if (options.processes > 0) return options.processes;
  return options.hosts.empty() ? 0 : places_of(options.hosts);
}

int nodes_of(const LaunchOptions& options) {
  return options.hosts.empty() ? 1 : static_cast<int>(base::parts(options.hosts).size());
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

std::vector<std::string> srun_line(const LaunchOptions& options, const std::string& program,
                                   const std::vector<std::string>& words) {
  if (options.processes == 0) refuse_no_number();
  std::vector<std::string> line{"srun", options.has_pmix ? "--mpi=pmix" : "--mpi=none",
                                "--kill-on-bad-exit=1", fmt::format("--ntasks={}", options.processes)};
  if (options.cores_per_task > 0) line.push_back(fmt::format("--cpus-per-task={}", options.cores_per_task));
  line.push_back(program);
  line.insert(line.end(), words.begin(), words.end());
  return line;
}

std::vector<std::string> here_line(const LaunchOptions& options, const std::string& program,
                                   const std::vector<std::string>& words) {
  if (options.processes == 0) refuse_no_number();
  std::vector<std::string> line{
      program, "launch", "--by", "here", "--processes", std::to_string(options.processes), "--"};
  line.insert(line.end(), words.begin(), words.end());
  return line;
}

std::string here_in_shell(const LaunchOptions& options, const std::string& program,
                          const std::vector<std::string>& words) {
  if (options.processes == 0) refuse_no_number();
  std::vector<std::string> line{program};
  line.insert(line.end(), words.begin(), words.end());
  return fmt::format(
      "for rank in $(seq 0 {}); do RANK=$rank LOCAL_RANK=$rank WORLD_SIZE={} MASTER_ADDR=127.0.0.1 "
      "MASTER_PORT=29500 {} & done; wait",
      options.processes - 1, options.processes, shell_line(line));
}

std::vector<std::string> mpirun_line(const LaunchOptions& options, const std::string& program,
                                     const std::vector<std::string>& words) {
  const int places = options.hosts.empty() ? 0 : places_of(options.hosts);
  const int processes = options.processes > 0 ? options.processes : places;
  if (processes == 0) refuse_no_number();
  if (places > 0 && places < processes)
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
  if (!options.ear.empty()) line.insert(line.end(), {"-x", fmt::format("{}={}", kEar, options.ear)});
  line.push_back(program);
  line.insert(line.end(), words.begin(), words.end());
  return line;
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

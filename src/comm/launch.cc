#include "comm/launch.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "base/error.h"
#include "base/text.h"

namespace paceline::comm {
namespace {

enum class Starter { launch, torchrun, mpirun, srun, pmix, mpich, other };

/// The variables of a launcher. The order of the table is that of precedence: inside a Slurm allocation
/// mpirun, torchrun and launch set their own variables beside Slurm's, and theirs are right.
struct Convention {
  Starter by;
  const char* name;
  const char* rank;
  const char* size;
  const char* only_with;  ///< another variable that must be set; null: none
  const char* local;      ///< index of the process on its host; null: unknown
  bool meets = false;     ///< whether processes must find one another by TCP
};
constexpr std::array kConventions{
    Convention{Starter::launch, "paceline launch", "RANK", "WORLD_SIZE", kJobOfLaunch, "LOCAL_RANK", true},
    Convention{Starter::torchrun, "torchrun", "RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID", "LOCAL_RANK",
               true},
    Convention{Starter::mpirun, "mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", nullptr,
               "OMPI_COMM_WORLD_LOCAL_RANK"},
    Convention{Starter::srun, "srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID",
               "SLURM_LOCALID"},
    Convention{Starter::pmix, "PMIx", "PMIX_RANK", nullptr, nullptr, nullptr},
    Convention{Starter::other, "the environment", "RANK", "WORLD_SIZE", nullptr, nullptr, true},
    Convention{Starter::other, "mpiexec", "PMI_RANK", "PMI_SIZE", "MASTER_ADDR", nullptr, true},
    Convention{Starter::mpich, "mpiexec", "PMI_RANK", "PMI_SIZE", nullptr, "MPI_LOCALRANKID"},
};

constexpr int kUnset = -1;

std::string text_from(const EnvironmentLookup& environment, const char* name) {
  const char* text = environment(name);
  return text == nullptr ? "" : text;
}

/// The variable as a number; kUnset if it is not set.
int number_of_variable(const EnvironmentLookup& environment, const char* name, int least) {
  const auto text = text_from(environment, name);
  if (text.empty()) return kUnset;
  const auto value = base::to_number<int>(text);
  if (!value || *value < least)
    base::fail(base::ErrorKind::usage,
               "the environment variable {} must be a whole number of at least {}, but is '{}'; a launcher "
               "sets it: unset it to start alone",
               name, least, text);
  return *value;
}

/// The tasks of host `index` in Slurm's list of tasks for each host, "2(x3),1"; 0 if unknown.
int tasks_of_host(std::string_view list, int index) {
  while (!list.empty() && index >= 0) {
    const auto one = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), one.size() + 1));
    int tasks = 0, hosts = 1;
    std::from_chars(one.data(), one.data() + one.size(), tasks);
    if (const auto times = one.find("(x"); times != std::string_view::npos)
      std::from_chars(one.data() + times + 2, one.data() + one.size(), hosts);
    if (index < hosts) return tasks;
    index -= hosts;
  }
  return 0;
}

std::string secret_from(const EnvironmentLookup& environment) {
  auto secret = text_from(environment, kSecret);
  if (!secret.empty() && secret.size() < kShortestSecret)
    base::fail(
        base::ErrorKind::usage,
        "the environment variable {} must have at least {} characters, but has {}: give all processes the "
        "same random text, such as that of 'openssl rand -hex 16'",
        kSecret, kShortestSecret, secret.size());
  return secret;
}

bool is_set(const EnvironmentLookup& environment, const char* name) {
  return !text_from(environment, name).empty();
}

/// Reads which processes share the host, which helps to name missing ones. It is no error if it is unknown.
void read_neighbours(const EnvironmentLookup& environment, const Convention& how, Launch& launch) {
  if (how.local == nullptr) return;
  launch.local = number_of_variable(environment, how.local, 0);
  if (how.by == Starter::launch) {
    launch.job = text_from(environment, kJobOfLaunch);
    launch.locals = launch.processes;
  } else if (how.by == Starter::torchrun) {
    // A run that torchrun restarts must not meet leftovers of the previous one.
    launch.job = text_from(environment, "TORCHELASTIC_RUN_ID") + "." +
                 text_from(environment, "TORCHELASTIC_RESTART_COUNT");
    launch.locals = std::max(0, number_of_variable(environment, "LOCAL_WORLD_SIZE", 1));
  } else if (how.by == Starter::mpich) {
    launch.locals = std::max(0, number_of_variable(environment, "MPI_LOCALNRANKS", 1));
  } else {
    launch.job = text_from(environment, "PMIX_NAMESPACE");
    launch.locals = std::max(0, number_of_variable(environment, "OMPI_COMM_WORLD_LOCAL_SIZE", 1));
  }
  if (how.by != Starter::srun) return;
  if (launch.job.empty())
    launch.job = text_from(environment, "SLURM_JOB_ID") + "." + text_from(environment, "SLURM_STEP_ID");
  launch.locals = tasks_of_host(text_from(environment, "SLURM_STEP_TASKS_PER_NODE"),
                                number_of_variable(environment, "SLURM_NODEID", 0));
}

constexpr int kTries = 8;  ///< number of ports tried for process 0, since some may be in use
constexpr int kLastPort = 65535;
/// For processes that are started separately, some of which may first have to pull an image.
constexpr std::chrono::seconds kFromOutside{600};

void read_meeting(const EnvironmentLookup& environment, const Convention& how, Launch& launch) {
  launch.meeting_host = text_from(environment, "MASTER_ADDR");
  const int port = number_of_variable(environment, "MASTER_PORT", 1);
  if (launch.meeting_host.empty() || port == kUnset || port > kLastPort)
    base::fail(base::ErrorKind::usage,
               "{} and {} are set, but not the address where the processes meet: set MASTER_ADDR to the "
               "host of {}=0 and MASTER_PORT to a free port there (1 to 65535), the same for all",
               how.rank, how.size, how.rank);
  launch.meeting_port = static_cast<std::uint16_t>(port);
  if (how.by != Starter::launch) launch.meet_within = kFromOutside;
  if (how.by == Starter::launch) launch.meeting_ports = std::min(kTries, kLastPort + 1 - port);
  const auto holds = text_from(environment, "TORCHELASTIC_USE_AGENT_STORE");
  if (how.by != Starter::torchrun || holds == "False" || holds == "0") return;
  if (port == kLastPort)
    base::fail(base::ErrorKind::usage,
               "torchrun itself listens at MASTER_PORT {}, and no higher port is left for Paceline; give "
               "torchrun a lower port (--master_port)",
               port);
  launch.meeting_port = static_cast<std::uint16_t>(port + 1);
  launch.meeting_ports = std::min(kTries, kLastPort - port);
}

/// Reads where the tasks of a Slurm step meet if PMIx does not join them (srun --mpi=none, pmi2).
void read_slurm_meeting(const EnvironmentLookup& environment, Launch& launch) {
  if (is_set(environment, "PMIX_RANK") || is_set(environment, "PMIX_NAMESPACE")) return;
  launch.meeting_host = text_from(environment, "MASTER_ADDR");
  if (launch.meeting_host.empty()) {
    const auto list = text_from(environment, "SLURM_STEP_NODELIST");
    launch.meeting_host = first_host(list);
    if (text_from(environment, "SLURM_DISTRIBUTION").starts_with("arbitrary"))
      base::fail(
          base::ErrorKind::usage,
          "srun uses --distribution=arbitrary, so the host of task 0 is not known; set MASTER_ADDR to it, "
          "leave --distribution out, or use srun --mpi=pmix");
    if (launch.meeting_host.empty())
      base::fail(base::ErrorKind::usage,
                 "srun started {} tasks without PMIx, and SLURM_STEP_NODELIST '{}' names no host where they "
                 "could meet; set MASTER_ADDR to the host of task 0, or use srun --mpi=pmix",
                 launch.processes, list);
  }
  // Below the ports that Linux gives to connections (32768 and up); different for the steps of one host.
  constexpr int kFirst = 20000, kGroups = 1250;
  const int job = std::max(0, number_of_variable(environment, "SLURM_JOB_ID", 0));
  const int step = std::max(0, number_of_variable(environment, "SLURM_STEP_ID", 0));
  const int derived = kFirst + kTries * static_cast<int>((job * 37LL + step) % kGroups);
  const int given = number_of_variable(environment, "MASTER_PORT", 1);
  if (given > kLastPort)
    base::fail(base::ErrorKind::usage, "MASTER_PORT must be at most {}, but is {}", kLastPort, given);
  const int port = given == kUnset ? derived : given;
  launch.meeting_port = static_cast<std::uint16_t>(port);
  launch.meeting_ports = std::min(kTries, kLastPort + 1 - port);
}

/// What only a launcher sets, and what else it would have set. NODE_RANK and GROUP_RANK are none of these:
/// some machines export them for every shell, and they number hosts.
struct Mark {
  const char* set;
  const char* missing;
};
constexpr std::array kMarks{
    Mark{"RANK", "WORLD_SIZE"},
    Mark{"WORLD_SIZE", "RANK"},
    Mark{"LOCAL_RANK", "RANK and WORLD_SIZE"},
    Mark{"LOCAL_WORLD_SIZE", "RANK and WORLD_SIZE"},
    Mark{"TORCHELASTIC_RUN_ID", "RANK and WORLD_SIZE"},
    Mark{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    Mark{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
    Mark{"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE"},
    Mark{"OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE"},
    Mark{"PMIX_NAMESPACE", "PMIX_RANK"},
    Mark{"PMI_RANK", "PMI_SIZE"},
    Mark{"PMI_SIZE", "PMI_RANK"},
    Mark{"MPI_LOCALRANKID", "PMI_RANK and PMI_SIZE"},
    Mark{"MPI_LOCALNRANKS", "PMI_RANK and PMI_SIZE"},
    Mark{"SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID and SLURM_PROCID"},
    // Launchers whose variables are not read.
    Mark{"HOROVOD_RANK", "RANK and WORLD_SIZE"},
    Mark{"MV2_COMM_WORLD_RANK", "PMI_RANK and PMI_SIZE"},
    Mark{"PALS_RANKID", "PMI_RANK and PMI_SIZE"},
    Mark{"ALPS_APP_PE", "PMI_RANK and PMI_SIZE"},
    Mark{"JSM_NAMESPACE_RANK", "OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE"},
    Mark{"FLUX_TASK_RANK", "PMI_RANK and PMI_SIZE"},
};

std::string half_text(const std::string& set, const std::string& value, const std::string& missing) {
  return fmt::format("{} is set ({}), but {} {} not", set, value, missing,
                     missing.find(" and ") == std::string::npos ? "is" : "are");
}

}  // namespace

std::string half_of_launcher(const EnvironmentLookup& environment) {
  if (!read_launch(environment).by.empty()) return "";
  const auto value = [&](const char* name) { return text_from(environment, name); };
  for (const auto& mark : kMarks) {
    // A number of one process is whole, and no rank is written as -1.
    const bool is_number = !std::string_view(mark.set).ends_with("RANK");
    const bool is_none = value(mark.set) == (is_number ? "1" : "-1");
    if (is_set(environment, mark.set) && !is_none) return half_text(mark.set, value(mark.set), mark.missing);
  }
  // Slurm sets SLURM_PROCID=0 also in the batch script, where nobody has started tasks.
  const auto task = value("SLURM_PROCID");
  if (is_set(environment, "SLURM_STEP_ID") || (!task.empty() && task != "0"))
    return half_text(task.empty() ? "SLURM_STEP_ID" : "SLURM_PROCID",
                     task.empty() ? value("SLURM_STEP_ID") : task,
                     is_set(environment, "SLURM_STEP_NUM_TASKS") ? "SLURM_PROCID" : "SLURM_STEP_NUM_TASKS");
  // A job's script may name the meeting for the srun in it.
  if (is_set(environment, "MASTER_ADDR") && is_set(environment, "MASTER_PORT") &&
      !is_set(environment, "SLURM_JOB_ID"))
    return half_text("MASTER_ADDR", value("MASTER_ADDR"), "RANK and WORLD_SIZE");
  return "";
}

void require_whole_launcher(const EnvironmentLookup& environment) {
  const auto half = half_of_launcher(environment);
  if (half.empty()) return;
  base::fail(base::ErrorKind::usage,
             "{}: this may be one of several processes, and each would train alone; set RANK, WORLD_SIZE, "
             "MASTER_ADDR and MASTER_PORT for each (docs/processes.md), or unset {} to train in one",
             half, half.substr(0, half.find(' ')));
}

std::string first_host(const std::string& list) {
  std::string name;
  for (std::size_t i = 0; i < list.size() && list[i] != ','; ++i) {
    if (list[i] != '[') {
      name += list[i];
      continue;
    }
    const auto end = list.find(']', i);
    if (end == std::string::npos) return "";
    const auto range = list.substr(i + 1, end - i - 1);
    name += range.substr(0, range.find_first_of(",-"));
    i = end;
  }
  return name;
}

bool Launch::is_on_this_host() const { return (locals > 0 && locals == processes) || !listen_at.empty(); }

std::string loopback_of(const std::string& host) {
  if (host == "localhost") return "127.0.0.1";
  in_addr four{};
  const bool is_own = ::inet_pton(AF_INET, host.c_str(), &four) == 1 && (ntohl(four.s_addr) >> 24) == 127;
  return is_own || host == "::1" ? host : "";
}

Launch read_launch(const EnvironmentLookup& environment) {
  for (const auto& how : kConventions) {
    if (how.only_with != nullptr && environment(how.only_with) == nullptr) continue;
    const int size = how.size == nullptr ? kUnset : number_of_variable(environment, how.size, 1);
    if (how.size != nullptr && size == kUnset) continue;
    const int rank = number_of_variable(environment, how.rank, 0);
    if (rank == kUnset && (how.size == nullptr || size == 1)) continue;
    if (rank == kUnset)
      base::fail(base::ErrorKind::usage, "{} is set, but {} is not; set both for each process, or neither",
                 how.size, how.rank);
    if (size != kUnset && rank >= size)
      base::fail(base::ErrorKind::usage, "{} {} must be below {} {}", how.rank, rank, how.size, size);
    Launch launch{.by = std::string(how.name) + " (" + (how.size == nullptr ? how.rank : how.size) + ")",
                  .process = rank,
                  .processes = size == kUnset ? 0 : size};
    launch.is_mpich = how.by == Starter::mpich;
    launch.kills_at_a_loss = how.rank == std::string_view("PMI_RANK");
    read_neighbours(environment, how, launch);
    if (how.meets && !launch.alone()) read_meeting(environment, how, launch);
    if (how.by == Starter::srun && !launch.alone()) read_slurm_meeting(environment, launch);
    if (!launch.meeting_host.empty()) launch.secret = secret_from(environment);
    launch.listen_at = loopback_of(launch.meeting_host);
    return launch;
  }
  return {};
}

}  // namespace paceline::comm

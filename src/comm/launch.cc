#include "comm/launch.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <string_view>

#include "base/error.h"

namespace paceline::comm {
namespace {

/// How one launcher says who a process is. In the order in which they are believed: mpirun inside a Slurm
/// allocation sets its own variables beside Slurm's, and its own are right.
struct Convention {
  const char* name;
  const char* rank;
  const char* size;
  const char* only_with;  ///< must be set besides; nullptr: nothing
  const char* local;      ///< its number on its host; nullptr: unknown
  bool meets = false;     ///< its processes have to find one another
};
constexpr std::array kConventions{
    Convention{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", nullptr,
               "OMPI_COMM_WORLD_LOCAL_RANK"},
    Convention{"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID", "SLURM_LOCALID"},
    Convention{"PMIx", "PMIX_RANK", nullptr, nullptr, nullptr},
    Convention{"the environment", "RANK", "WORLD_SIZE", nullptr, nullptr, true},
};

constexpr int kUnset = -1;

/// The variable as a number, kUnset where it is not set.
int number(const EnvironmentLookup& environment, const char* name, int least) {
  const char* text = environment(name);
  if (text == nullptr || *text == '\0') return kUnset;
  int value = 0;
  const char* end = text + std::strlen(text);
  const auto [stopped, error] = std::from_chars(text, end, value);
  if (error != std::errc() || stopped != end || value < least)
    base::fail(base::ErrorKind::usage,
               "the environment variable {} must be a whole number of at least {}, is '{}'; a launcher sets "
               "it: unset it to start alone",
               name, least, text);
  return value;
}

std::string text_from(const EnvironmentLookup& environment, const char* name) {
  const char* text = environment(name);
  return text == nullptr ? "" : text;
}

/// Of Slurm's "2(x3),1", tasks on each host in turn, those of host `index`; 0 where it does not say.
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

/// What is good to know where processes do not come, and no reason to fail where it is not there.
void read_neighbours(const EnvironmentLookup& environment, const Convention& how, Launch& launch) {
  if (how.local == nullptr) return;
  launch.job = text_from(environment, "PMIX_NAMESPACE");
  launch.local = number(environment, how.local, 0);
  launch.locals = std::max(0, number(environment, "OMPI_COMM_WORLD_LOCAL_SIZE", 1));
  if (how.only_with == nullptr) return;
  if (launch.job.empty())
    launch.job = text_from(environment, "SLURM_JOB_ID") + "." + text_from(environment, "SLURM_STEP_ID");
  launch.locals = tasks_of_host(text_from(environment, "SLURM_STEP_TASKS_PER_NODE"),
                                number(environment, "SLURM_NODEID", 0));
}

void read_meeting(const EnvironmentLookup& environment, Launch& launch) {
  const char* host = environment("MASTER_ADDR");
  const int port = number(environment, "MASTER_PORT", 1);
  if (host == nullptr || *host == '\0' || port == kUnset || port > 65535)
    base::fail(
        base::ErrorKind::usage,
        "RANK and WORLD_SIZE are set, but not where the processes meet: set MASTER_ADDR to the host of "
        "RANK=0 and MASTER_PORT to a free port there (1 to 65535), the same for all");
  launch.meeting_host = host;
  launch.meeting_port = static_cast<std::uint16_t>(port);
}

}  // namespace

Launch read_launch(const EnvironmentLookup& environment) {
  for (const auto& how : kConventions) {
    if (how.only_with != nullptr && environment(how.only_with) == nullptr) continue;
    const int size = how.size == nullptr ? kUnset : number(environment, how.size, 1);
    if (how.size != nullptr && size == kUnset) continue;
    const int rank = number(environment, how.rank, 0);
    if (rank == kUnset && (how.size == nullptr || size == 1)) continue;
    if (rank == kUnset)
      base::fail(base::ErrorKind::usage, "{} is set but {} is not; set both for each process, or neither",
                 how.size, how.rank);
    if (size != kUnset && rank >= size)
      base::fail(base::ErrorKind::usage, "{} {} must be below {} {}", how.rank, rank, how.size, size);
    Launch launch{.by = std::string(how.name) + " (" + (how.size == nullptr ? how.rank : how.size) + ")",
                  .process = rank,
                  .processes = size == kUnset ? 0 : size};
    if (how.meets && !launch.alone()) read_meeting(environment, launch);
    read_neighbours(environment, how, launch);
    return launch;
  }
  if (const int others = number(environment, "PMI_SIZE", 1); others > 1)
    base::fail(
        base::ErrorKind::comm,
        "a launcher of another MPI started {} processes (PMI_SIZE), and each of them would train alone; use "
        "Open MPI's mpirun, srun --mpi=pmix, or paceline launch -n {}",
        others, others);
  return {};
}

}  // namespace paceline::comm

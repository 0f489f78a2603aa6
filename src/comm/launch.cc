#include "comm/launch.h"

#include <array>
#include <charconv>
#include <cstring>

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
  bool meets = false;     ///< its processes have to find one another
};
constexpr std::array kConventions{
    Convention{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", nullptr},
    Convention{"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"},
    Convention{"PMIx", "PMIX_RANK", nullptr, nullptr},
    Convention{"the environment", "RANK", "WORLD_SIZE", nullptr, true},
};

constexpr int kUnset = -1;

/// The variable as a number, kUnset where it is not set.
int number(const Environment& environment, const char* name, int least) {
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

void read_meeting(const Environment& environment, Launch& launch) {
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

Launch read_launch(const Environment& environment) {
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

#include "cluster/session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>
#include <set>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "base/topology.h"
#include "cluster/log.h"
#include "comm/make.h"

namespace paceline::cluster {
namespace {

/// How long the end of a killed process is hidden from an mpiexec of MPICH's family, which then kills all.
constexpr std::chrono::seconds kToNameTheLost{8};

/// The shortest deadline for starting and ending MPI, which has no deadline itself and cannot name processes,
/// and for measuring kernels in the first process.
constexpr std::chrono::seconds kToMeet{60};

/// Reports silent processes after about as long as the detector does later (comm::DetectorOptions); observes
/// them during the last second.
constexpr std::chrono::seconds kToBegin{4}, kCpuTimesApart{1};

/// Ends this process with a message unless it is destroyed in time, since a call that hangs in a library
/// cannot be stopped.
class LastResort {
 public:
  /// `here`, if given, names the processes to blame, early and again at the end.
  LastResort(int process, std::chrono::seconds longest, std::string sentence,
             const comm::StartupProbe* here = nullptr)
      : thread_([=](const std::stop_token& stop) {
          const auto suspects_in = [&](std::chrono::seconds wait) -> std::optional<std::string> {
            if (base::stopped_within(stop, wait - kCpuTimesApart)) return std::nullopt;
            const auto before = here == nullptr ? comm::StartupProbe::CpuTimes() : here->cpu_times();
            if (base::stopped_within(stop, kCpuTimesApart)) return std::nullopt;
            return here == nullptr ? "" : fmt::format("{}", fmt::join(here->absent(before), ", "));
          };
          const auto early = suspects_in(kToBegin);
          if (!early) return;
          if (!early->empty())
            log_line(
                fmt::format("the processes of this run have not met: {}; given up after {} s at the latest",
                            *early, longest.count()));
          // The first process reports for all, and its end ends the others; if it hangs itself, the next one
          // reports.
          const auto late = suspects_in(longest - kToBegin + std::chrono::seconds(5 * std::min(process, 3)));
          if (!late) return;
          const auto why = late->empty() ? sentence : fmt::format("{}: {}", sentence, *late);
          log_line(fmt::format("{}; this is process {} on host {}", why, process, base::host_name()));
          Guard::dismiss();
          std::_Exit(static_cast<int>(base::ErrorKind::comm));
        }) {}

 private:
  std::jthread thread_;
};

/// The GPUs visible to this process, by the driver's device files and CUDA_VISIBLE_DEVICES.
std::string my_gpus() {
  int there = 0;
  for (const auto& entry : base::entries_of("/dev")) {
    const auto name = entry.path().filename().string();
    if (name.starts_with("nvidia") && name.find_first_not_of("0123456789", 6) == std::string::npos &&
        name.size() > 6)
      ++there;
  }
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (there == 0) return "none";
  if (visible == nullptr) return fmt::format("all {}", there);
  return fmt::format("{} of {}", *visible == '\0' ? "none" : visible, there);
}

/// The memory node of all cores that this process may use; -1 if they have several.
int own_memory_node() {
  std::set<int> nodes;
  for (const auto& core : base::topology().cores) nodes.insert(core.numa);
  return nodes.size() == 1 ? *nodes.begin() : -1;
}

ProcessInfo own_process_info(int process, const std::string& command, std::span<const SeenGpu> gpus) {
  ProcessInfo mine{.process = process,
                   .host = base::host_name(),
                   .cores = base::current_affinity(),
                   .cores_of_host = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)),
                   .gpus = my_gpus(),
                   .usable = base::usable_cores(),
                   .pid = ::getpid(),
                   .node = gpus.empty() ? -1 : own_memory_node(),
                   .sees = {gpus.begin(), gpus.end()},
                   .command = command};
  if (const char* of_job = std::getenv("SLURM_CPUS_ON_NODE"))
    if (const int cores = std::atoi(of_job); cores > 0)
      mine.cores_of_host = std::min(mine.cores_of_host, cores);
  return mine;
}

/// The number of cores that the processes of `host` may use together: each set of cores counts once, limited
/// by its quota.
int cores_together(std::span<const ProcessInfo> all, const std::string& host) {
  std::set<int> cores;
  std::map<std::vector<int>, int> usable;
  for (const auto& process : all) {
    if (process.host != host) continue;
    cores.insert(process.cores.begin(), process.cores.end());
    usable[process.cores] = std::max(usable[process.cores], process.usable);
  }
  int sum = 0;
  for (const auto& [set, of_set] : usable) sum += of_set;
  return std::min(sum, static_cast<int>(cores.size()));
}

}  // namespace

Session::Session(const comm::Launch& launch, std::chrono::seconds deadline)
    : deadline_(deadline),
      guard_({.process = launch.process,
              .longest_stop = deadline + time_to_end(),
              .outlives = launch.kills_at_a_loss ? kToNameTheLost : std::chrono::seconds(0)}),
      here_(launch) {
  const auto longest = std::max(deadline, kToMeet);
  // Who asks for less time than is usual gets it, and a moment for the message of those who wait.
  const auto to_come =
      launch.meet_within < kToMeet ? launch.meet_within + kToBegin : std::max(longest, launch.meet_within);
  const LastResort join(
      launch.process, to_come,
      fmt::format("the processes of this run have not met within {} s: one of them hangs before that, or was "
                  "never started",
                  to_come.count()),
      &here_);
  wire_ = comm::open_wire(launch, log_line);
  place_.process = wire_->process();
  place_.processes = wire_->processes();
  place_.launcher = launch.by;
  place_.library = wire_->library();
  if (launch.processes > 1 && place_.processes != launch.processes) {
    wire_->give_up();
    base::fail(
        base::ErrorKind::comm,
        "{} says that there are {} processes, but MPI knows {}: the launcher and this MPI ({}) do not work "
        "together; with Slurm use srun --mpi=pmix, else the mpirun or mpiexec of the same MPI",
        launch.by, launch.processes, place_.processes, place_.library);
  }
  try {
    processes_ = std::make_unique<comm::ProcessGroup>(
        *wire_,
        comm::ProcessGroupOptions{.deadline = longest,
                                  .shared_memory = false,
                                  .watch = {.deadline = longest,
                                            .interface = launch.interface,
                                            .is_on_this_host = launch.is_on_this_host()}},  // see meet()
        [stalls = stalls_](const std::string& text) {
          log_line(text);
          stalls->hear(text);
        });
    exit_watchdog_.emplace(fmt::format("process {} on host {}", place_.process, base::host_name()));
    exit_watchdog_->watch([this]() -> std::optional<ExitWatchdog::Failure> {
      const auto failure = processes_->failure();
      if (!failure) return std::nullopt;
      // Its own failure the first process would print on its way out.
      const bool is_unsaid = is_first() && processes_->failure_is_own();
      return ExitWatchdog::Failure{is_unsaid ? failure->text : "", failure->kind, failure->known_at};
    });
  } catch (...) {      // most likely the system refused a thread
    wire_->give_up();  // otherwise its end would wait for the others, and they for this process
    throw;
  }
}

Session::~Session() {
  const auto longest = std::max(deadline_, kToMeet);
  // Kept to the very end, since the libraries can still hang after main().
  try {
    [[maybe_unused]] static const auto* const leave = new LastResort(
        place_.process, longest,
        fmt::format("the run is over, but the processes have not left it together within {} s: one of them "
                    "hangs, or their launcher does",
                    longest.count()));
  } catch (const std::system_error&) {
    // The system refuses threads, which most likely made the run fail; it then ends without a last resort.
  }
  exit_watchdog_.reset();
  processes_.reset();
  wire_.reset();
}

int Session::leave(int exit_code) {
  constexpr int kBySignal = 128;
  const int signal = processes_->leave(std::max(0, exit_code - kBySignal));
  return signal > 0 ? kBySignal + signal : exit_code;
}

void Session::require_one_version(const std::string& version) {
  struct Label {  // the first message between processes, the same in every version
    std::array<char, 64> host{}, version{};
  } mine;
  std::strncpy(mine.host.data(), base::host_name().c_str(), mine.host.size() - 1);
  std::strncpy(mine.version.data(), version.c_str(), mine.version.size() - 1);
  std::vector<Label> all(static_cast<std::size_t>(place_.processes));
  processes_->all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  for (std::size_t process = 1; process < all.size(); ++process)
    if (all[process].version != all[0].version)
      base::fail(
          base::ErrorKind::comm,
          "process {} on {} is Paceline {}, and process 0 on {} is {}: install one version on all hosts, or "
          "start it from a folder that they share",
          process, all[process].host.data(), all[process].version.data(), all[0].host.data(),
          all[0].version.data());
}

void Session::meet(const std::string& version, const std::string& command, bool shared_memory,
                   std::span<const SeenGpu> gpus) {
  require_one_version(version);
  if (shared_memory) processes_->share_memory();
  members_ = gather(own_process_info(place_.process, command, gpus));
  place_.host = members_[static_cast<std::size_t>(place_.process)].host;
  std::map<std::string, int> of_hosts;
  const auto& first = members_.front();
  for (auto& info : members_) {
    if (info.command != first.command)
      base::fail(base::ErrorKind::comm,
                 "process {} on {} was started with another command than process 0 on {}: '{}' against '{}'; "
                 "give all the same",
                 info.process, info.host, first.host, info.command, first.command);
    info.local = of_hosts[info.host]++;
  }
  place_ = place_among(all_processes());
}

std::vector<int> Session::all_processes() const {
  std::vector<int> all(members_.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::vector<int> Session::neighbour_pids() const {
  const auto& mine = members_[static_cast<std::size_t>(place_.process)];
  std::vector<int> pids;
  for (const auto& other : members_)
    if (other.host == mine.host && other.process != mine.process) pids.push_back(other.pid);
  return pids;
}

AssignedGpus Session::gpus_of(std::span<const int> members, int workers_each,
                              std::optional<int> fixed) const {
  const ProcessInfo& mine = members_[static_cast<std::size_t>(place_.process)];
  std::map<std::string, std::vector<GpuTaker>> hosts;
  for (const auto& other : members_)
    hosts[other.host].push_back({.node = other.node,
                                 .gpus = other.sees,
                                 .cores = other.cores,
                                 .works = std::ranges::find(members, other.process) != members.end()});
  auto dealt = assigned_to(static_cast<std::size_t>(mine.local), hosts[mine.host], workers_each, fixed);
  for (const auto& [host, takers] : hosts)
    dealt.is_any_shared |= assigned_to(0, takers, workers_each, fixed).is_any_shared;
  return dealt;
}

train::ProcessPlacement Session::place_among(std::span<const int> members) const {
  train::ProcessPlacement place = place_;
  const ProcessInfo& mine = members_[static_cast<std::size_t>(place_.process)];
  place.processes = static_cast<int>(members.size());
  // For all processes, not only these members, since all cells of a session are measured on one machine.
  place.host_cores = cores_together(members_, mine.host);
  place.is_beside_first = members_[0].host == mine.host;
  place.neighbours = place.core_sharers = place.core_share_index = 0;
  std::vector<std::string> hosts;
  place.processes_of_hosts.clear();
  for (std::size_t i = 0; i < members.size(); ++i) {
    const ProcessInfo& other = members_[static_cast<std::size_t>(members[i])];
    const bool is_here = other.process == mine.process;
    if (is_here) place.process = static_cast<int>(i);
    const auto host = static_cast<std::size_t>(std::ranges::find(hosts, other.host) - hosts.begin());
    if (host == hosts.size()) {
      hosts.push_back(other.host);
      place.processes_of_hosts.push_back(0);
    }
    ++place.processes_of_hosts[host];
    if (other.host != mine.host) continue;
    ++place.neighbours;
    if (other.cores != mine.cores) continue;
    if (is_here) place.core_share_index = place.core_sharers;
    ++place.core_sharers;
  }
  place.hosts = static_cast<int>(hosts.size());
  return place;
}

bool Session::fail(base::ErrorKind kind, const std::string& text) {
  // An error that every process finds needs no name of a process; an error of one process does.
  const bool of_all = kind == base::ErrorKind::usage || is_first();
  processes_->fail(
      of_all ? text : fmt::format("rank {} on host {} gave up: {}", place_.process, place_.host, text),
      kind);  // the first failure counts; a worker may have reported it already
  if (kind == base::ErrorKind::comm && is_first() && base::out_of_memory_kills() > kills_before_)
    log_line(kOutOfMemory);
  const bool own = processes_->failure_is_own();
  const bool heard = processes_->leave_after_failure();
  const auto failure = processes_->failure();
  // A first process that hangs may still receive the failure and print it.
  if (failure && failure->of_first()) return own && !heard && place_.process == failure->reporter;
  return own && (is_first() || !heard);
}

void Session::let_the_first_speak() const {
  constexpr std::chrono::milliseconds kPatience(5000), kLook(20);
  const auto until = base::Clock::now() + kPatience;
  while (!is_first() && !processes_->failure() && base::Clock::now() < until)
    std::this_thread::sleep_for(kLook);
}

base::ErrorKind Session::kind_of_failure(base::ErrorKind otherwise) const {
  const auto failure = processes_->failure();
  return failure ? failure->kind : otherwise;
}

bool Session::silent() const {
  if (!is_first()) return true;
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  return processes_->failure().has_value();
}

}  // namespace paceline::cluster

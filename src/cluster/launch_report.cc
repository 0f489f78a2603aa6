#include "cluster/launch_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <ostream>
#include <set>

#include "base/shared_library.h"
#include "base/text.h"
#include "cluster/assign_gpus.h"
#include "cluster/child.h"
#include "comm/gloo/load.h"
#include "comm/mpi/load.h"

namespace paceline::cluster {
namespace {

void launch_row(std::ostream& out, const std::string& name, const std::string& text) {
  out << fmt::format("  {:<13} {}\n", name, text);
}

/// Variables by which launchers tell a process what was requested and granted. The cores that it may really
/// use are in the table.
constexpr std::array kTold{"OMPI_COMM_WORLD_SIZE",
                           "OMPI_COMM_WORLD_LOCAL_SIZE",
                           "OMPI_MCA_hwloc_base_binding_policy",
                           "SLURM_JOB_ID",
                           "SLURM_JOB_NODELIST",
                           "SLURM_NTASKS",
                           "SLURM_STEP_NODELIST",
                           "SLURM_STEP_NUM_TASKS",
                           "SLURM_CPUS_PER_TASK",
                           "SLURM_CPUS_ON_NODE",
                           "SLURM_GPUS_ON_NODE",
                           "PMIX_RANK",
                           "RANK",
                           "WORLD_SIZE",
                           "LOCAL_RANK",
                           "MASTER_ADDR",
                           "MASTER_PORT",
                           "TORCHELASTIC_RUN_ID",
                           "CUDA_VISIBLE_DEVICES"};

void show_told(std::ostream& out) {
  for (const char* name : kTold)
    if (const char* value = std::getenv(name)) out << fmt::format("  {:<30} {}\n", name, value);
}

void show_what_could_start(std::ostream& out) {
  const auto environment = base::process_environment();
  const auto odd = odd_about_one_alone(environment);
  const auto mpirun = in_path("mpirun"), srun = in_path("srun");
  const auto module = base::module_path(comm::mpi::kModule);
  launch_row(out, "this one", how_alone(environment));
  show_told(out);
  launch_row(out, "mpirun", mpirun.empty() ? "is not installed (Debian: openmpi-bin)" : mpirun);
  launch_row(out, "srun", srun.empty() ? "is not installed: there is no Slurm on this host" : srun);
  launch_row(
      out, "MPI",
      std::filesystem::exists(module)
          ? module.string() + " joins the processes"
          : "is not built in (libopenmpi-dev was not installed): ./x build installs it and builds it in");
  const auto gloo = base::module_path(comm::gloo::kModule);
  launch_row(
      out, "gloo",
      std::filesystem::exists(gloo)
          ? gloo.string() +
                " joins processes by TCP: those of launch on one host, of srun without PMIx, of torchrun, "
                "and those with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT"
          : "is not built in (libgloo-dev was not installed): ./x build installs it and builds it in");
  if (!odd.empty()) launch_row(out, "odd", odd);
}

}  // namespace

std::string how_alone(const comm::EnvironmentLookup& environment) {
  if (const auto half = comm::half_of_launcher(environment); !half.empty())
    return fmt::format("started alone, and a training would be refused: {}", half);
  const auto by = comm::read_launch(environment).by;
  return by.empty() ? "started alone: no launcher has set its variables"
                    : fmt::format("started as the only process by {}", by);
}

std::string odd_about_one_alone(const comm::EnvironmentLookup& environment) {
  if (environment("SLURM_JOB_ID") == nullptr || environment("SLURM_STEP_ID") != nullptr) return "";
  for (const auto& [variable, things] :
       {std::pair{"SLURM_NTASKS", "tasks"}, {"SLURM_JOB_NUM_NODES", "nodes"}})
    if (const char* const number = environment(variable); number != nullptr && std::string(number) != "1")
      return fmt::format(
          "this Slurm job has {} {}, but this process is in no step of it, so the others were not started; "
          "put srun before the command, or paceline launch",
          number, things);
  return "";
}

std::vector<std::string> odd_about(const std::vector<ProcessInfo>& members) {
  struct Host {
    int processes = 0;
    std::set<int> cores;  ///< cores that any process may use
    int there = 0;
    std::size_t fewest = 0, most = 0;
    int poorest = 0;  ///< the process with the fewest
  };
  std::map<std::string, Host> hosts;
  for (const auto& info : members) {
    auto& host = hosts[info.host];
    if (host.processes == 0 || info.cores.size() < host.fewest) {
      host.fewest = info.cores.size();
      host.poorest = info.process;
    }
    host.most = std::max(host.most, info.cores.size());
    ++host.processes;
    host.cores.insert(info.cores.begin(), info.cores.end());
    host.there = info.cores_of_host;
  }
  std::vector<std::string> odd;
  for (const auto& [name, host] : hosts) {
    const auto used = static_cast<int>(host.cores.size());
    if (host.processes > used)
      odd.push_back(
          fmt::format("{} processes share {} of {}: times say nothing about machines with a core for each",
                      host.processes, base::counted(used, "core"), name));
    if (2 * used <= host.there)
      odd.push_back(fmt::format(
          "the processes on {} may use {} of its {} cores (one of them: {}), the rest stays idle; with "
          "mpirun give --bind-to none or --map-by slot:PE={}, with srun --cpus-per-task={}",
          name, used, host.there, host.fewest, host.there / host.processes, host.there / host.processes));
    else if (2 * host.fewest <= host.most)
      odd.push_back(
          fmt::format("on {} rank {} may use {} and another one {}: the others wait for it; give all "
                      "as many, with mpirun --map-by slot:PE={}, with srun --cpus-per-task={}",
                      name, host.poorest, base::counted(host.fewest, "core"), host.most,
                      std::max(1, host.there / host.processes), std::max(1, host.there / host.processes)));
  }
  std::set<int> each;
  for (const auto& [name, host] : hosts) each.insert(host.processes);
  if (each.size() > 1)
    odd.push_back(fmt::format("hosts have between {} and {} processes: the fuller ones are waited for",
                              *each.begin(), *each.rbegin()));
  return odd;
}

void show_members(const std::vector<ProcessInfo>& members, std::ostream& out) {
  std::size_t host = 4, cores = 5;  // widths
  const auto cores_of = [](const ProcessInfo& info) {
    return fmt::format("{} ({} of {})", core_ranges(info.cores), info.cores.size(), info.cores_of_host);
  };
  for (const auto& info : members) {
    host = std::max(host, info.host.size());
    cores = std::max(cores, cores_of(info).size());
  }
  const auto line = [&](auto rank, const std::string& name, auto local, const std::string& used,
                        const std::string& gpus) {
    out << fmt::format("  {:<5} {:<{}}  {:<10}  {:<{}}  {}\n", rank, name, host, local, used, cores, gpus);
  };
  line("rank", "host", "local rank", "cores", "GPU");
  for (const auto& info : members) line(info.process, info.host, info.local, cores_of(info), info.gpus);
}

void show_launch(const Session* session, std::ostream& out) {
  out << "\nprocesses\n";
  if (session == nullptr) return show_what_could_start(out);
  const auto& place = session->place();
  launch_row(out, "launcher",
             fmt::format("{}: {} processes, joined by {}", place.launcher, place.processes, place.library));
  show_members(session->members(), out);
  show_told(out);
  const auto odd = odd_about(session->members());
  for (const auto& sentence : odd) launch_row(out, "odd", sentence);
  if (odd.empty()) launch_row(out, "", "every process has cores of its own, and as many as it can get");
}

}  // namespace paceline::cluster

#include "base/topology.h"

#include <fmt/core.h>
#include <hwloc.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "base/text.h"

namespace paceline::base {
namespace {

constexpr int kMostCores = 8192;  // of a machine

/// The kernel's form of the bus id: four digits for the domain, lower case.
std::string kernel_name(std::string bus_id) {
  constexpr std::size_t kLength = 12;  // "0000:c1:00.0"; NVML's domain has eight digits
  if (bus_id.size() > kLength) bus_id = bus_id.substr(bus_id.size() - kLength);
  return bus_id.find('/') == std::string::npos ? lower_case(bus_id) : "";
}

/// Takes the number of a core or a node off the beginning of `text`.
std::optional<int> take_core(std::string_view& text) {
  const auto number = take_number<int>(text);
  return number && *number >= 0 && *number < kMostCores ? number : std::nullopt;
}

struct FreeTopology {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using HwlocTopology = std::unique_ptr<hwloc_topology, FreeTopology>;

/// A CPU mask of sufficient size; sched_getaffinity fails if it is too short.
struct CpuSet {
  CpuSet() { CPU_ZERO_S(bytes, set); }
  ~CpuSet() { CPU_FREE(set); }
  CpuSet(const CpuSet&) = delete;
  CpuSet& operator=(const CpuSet&) = delete;
  cpu_set_t* const set = CPU_ALLOC(kMostCores);
  const std::size_t bytes = CPU_ALLOC_SIZE(kMostCores);
};

/// How many of `allowed` hardware threads a quota (0: none) can keep busy: two for 1.5 cores' time, one for
/// 0.2; at least one.
int usable_of(std::size_t allowed, double quota) {
  auto threads = static_cast<double>(allowed);
  if (quota > 0) threads = std::min(threads, std::ceil(quota - 1e-9));
  return std::max(1, static_cast<int>(threads));
}

/// Describes the allowed hardware threads; `sibling` counts those of a physical core that are allowed.
std::vector<Core> describe(hwloc_topology* topology, const std::set<int>& allowed) {
  std::vector<Core> cores;
  std::map<hwloc_obj_t, int> physical, siblings;
  const int count = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
  for (int i = 0; i < count; ++i) {
    const hwloc_obj_t unit = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PU, static_cast<unsigned>(i));
    if (!allowed.contains(static_cast<int>(unit->os_index))) continue;
    hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, unit);
    if (core == nullptr) core = unit;
    const hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, unit);
    const int numa = unit->nodeset == nullptr ? 0 : std::max(0, hwloc_bitmap_first(unit->nodeset));
    cores.push_back({.number = static_cast<int>(unit->os_index),
                     .physical = physical.emplace(core, static_cast<int>(physical.size())).first->second,
                     .sibling = siblings[core]++,
                     .package = package == nullptr ? 0 : static_cast<int>(package->logical_index),
                     .numa = numa});
  }
  return cores;
}

bool contains(const std::vector<int>& numbers, int number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

/// Moves cores for which `wanted` returns true from `free` to `cores`, until `cores` has `threads` of them.
template <typename Wanted>
void take_cores(std::vector<Core>& free, std::vector<Core>& cores, int threads, Wanted wanted) {
  for (auto core = free.begin(); core != free.end() && static_cast<int>(cores.size()) < threads;) {
    if (!wanted(*core)) {
      ++core;
      continue;
    }
    cores.push_back(*core);
    core = free.erase(core);
  }
}

/// "; near their GPUs", "; 1 of 4 workers has cores far from its GPU"; "" if no worker has a GPU.
std::string text_about_wishes(const std::vector<std::vector<int>>& cores,
                              std::span<const std::vector<int>> near) {
  int wishes = 0, far = 0;
  for (std::size_t worker = 0; worker < near.size(); ++worker) {
    if (near[worker].empty()) continue;
    ++wishes;
    if (std::ranges::any_of(cores[worker], [&](int core) { return !contains(near[worker], core); })) ++far;
  }
  if (wishes == 0) return "";
  if (far == 0) return wishes == 1 ? ", near its GPU" : ", near their GPUs";
  return fmt::format("; {} of {} worker{} cores far from {} GPU", far, cores.size(),
                     cores.size() == 1 ? " has"
                     : far == 1        ? "s has"
                                       : "s have",
                     far == 1 ? "its" : "their");
}

}  // namespace

std::string cpu_info(const std::string& key) {
  // "model name\t: Intel ..."
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key + '\t'))
      return line.substr(std::min(line.find_first_not_of("\t: ", key.size()), line.size()));
  return "";
}

std::optional<std::vector<int>> parse_core_list(const std::string& text) {
  std::vector<int> cores;
  for (std::string_view rest = text; !rest.empty();) {
    const auto first = take_core(rest);
    if (!first) return std::nullopt;
    int last = *first;
    if (rest.starts_with('-')) {
      rest.remove_prefix(1);
      const auto to = take_core(rest);
      if (!to || *to < *first) return std::nullopt;
      last = *to;
    }
    for (int core = *first; core <= last; ++core) cores.push_back(core);
    if (rest.empty()) break;
    if (!rest.starts_with(',') || rest.size() == 1) return std::nullopt;
    rest.remove_prefix(1);
  }
  return cores;
}

std::optional<PciLocality> pci_locality(const std::string& bus_id, const std::filesystem::path& devices) {
  const auto name = kernel_name(bus_id);
  if (name.empty()) return std::nullopt;
  const auto cores = parse_core_list(first_line_of(devices / name / "local_cpulist").value_or(""));
  if (!cores || cores->empty()) return std::nullopt;
  PciLocality locality{.cores = *cores};
  const auto node = first_line_of(devices / name / "numa_node").value_or("");
  std::string_view number = node;
  locality.numa = take_core(number);  // -1: the machine has one node, or it is unknown
  return locality;
}

int Topology::usable() const { return usable_of(cores.size(), quota); }

int Topology::physical_cores() const {
  return static_cast<int>(std::ranges::count(cores, 0, &Core::sibling));
}

Topology topology() {
  Topology result;
  result.quota = cgroup_limits().cpus.value_or(0);
  const auto affinity = current_affinity();
  const std::set<int> allowed(affinity.begin(), affinity.end());
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) == 0) {
    const HwlocTopology owner(raw);
    if (hwloc_topology_load(raw) == 0) result.cores = describe(raw, allowed);
  }
  if (result.cores.size() != allowed.size()) {  // hwloc sees less than the mask allows: trust the mask
    result.cores.clear();
    for (const int number : allowed)
      result.cores.push_back({.number = number, .physical = static_cast<int>(result.cores.size())});
  }
  return result;
}

int usable_cores() { return usable_of(current_affinity().size(), cgroup_limits().cpus.value_or(0)); }

CorePlan plan_cores(const Topology& topology, int workers, int threads,
                    std::span<const std::vector<int>> near) {
  expects(workers >= 1 && threads >= 1, "workers >= 1 && threads >= 1");
  expects(near.empty() || near.size() == static_cast<std::size_t>(workers), "a wish for each worker");
  CorePlan plan;
  plan.cores.resize(static_cast<std::size_t>(workers));
  const int needed = workers * threads, usable = topology.usable();
  if (needed > usable) {
    plan.oversubscribed = true;
    plan.note = fmt::format(
        "{} worker threads share {}: they are not pinned, and their times say nothing about a "
        "machine with {} cores",
        needed, counted(usable, "core"), needed);
    return plan;
  }
  if (usable < static_cast<int>(topology.cores.size())) {
    // A quota limits time, not cores, so pinning would not help.
    plan.note = fmt::format(
        "not pinned: the cgroup allows the computing time of {:.3g} of {} cores, on any "
        "of them",
        topology.quota, topology.cores.size());
    return plan;
  }
  std::vector<Core> in_order = topology.cores;
  std::ranges::stable_sort(in_order, {}, &Core::sibling);
  std::vector<Core> free = in_order;
  std::vector<std::vector<Core>> cores(plan.cores.size());
  const auto take_near = [&](auto is_wanted) {
    for (std::size_t worker = 0; worker < near.size(); ++worker)
      take_cores(free, cores[worker], threads,
                 [&](const Core& core) { return is_wanted(core) && contains(near[worker], core.number); });
    for (auto& of_worker : cores) take_cores(free, of_worker, threads, is_wanted);
  };
  // First choose the cores that are used at all: second hardware threads only after all first ones, even
  // those far away.
  take_near([](const Core& core) { return core.sibling == 0; });
  take_near([](const Core&) { return true; });
  // Then give each worker those of them that are near it.
  std::vector<int> used;
  for (auto& of_worker : cores) {
    for (const Core& core : of_worker) used.push_back(core.number);
    of_worker.clear();
  }
  free = in_order;
  std::erase_if(free, [&](const Core& core) { return !contains(used, core.number); });
  take_near([](const Core&) { return true; });
  bool shared = false;
  for (std::size_t worker = 0; worker < cores.size(); ++worker) {
    for (const Core& core : cores[worker]) {
      plan.cores[worker].push_back(core.number);
      shared = shared || core.sibling > 0;
    }
  }
  plan.note = fmt::format("{} pinned to {}{}{}{}", counted(workers, "worker"), counted(threads, "core"),
                          workers == 1 ? "" : " each", text_about_wishes(plan.cores, near),
                          shared ? "; some are second hardware threads of a core already in use" : "");
  return plan;
}

CorePlan plan_cores(int workers, int threads, std::span<const std::vector<int>> near) {
  return plan_cores(topology(), workers, threads, near);
}

std::optional<std::string> bind_current_thread(const std::vector<int>& cores) {
  if (cores.empty()) return std::nullopt;
  const CpuSet mask;
  for (const int core : cores) {
    expects(core >= 0 && core < kMostCores, "0 <= core < kMostCores");
    CPU_SET_S(static_cast<std::size_t>(core), mask.bytes, mask.set);
  }
  if (::sched_setaffinity(0, mask.bytes, mask.set) == 0) return std::nullopt;
  return std::strerror(errno);
}

std::vector<int> current_affinity() {
  const CpuSet mask;
  std::vector<int> cores;
  if (::sched_getaffinity(0, mask.bytes, mask.set) == 0) {
    for (int core = 0; core < kMostCores; ++core)
      if (CPU_ISSET_S(static_cast<std::size_t>(core), mask.bytes, mask.set)) cores.push_back(core);
  }
  if (cores.empty())
    for (int core = 0; core < std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)); ++core) cores.push_back(core);
  return cores;
}

}  // namespace paceline::base

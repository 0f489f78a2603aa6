#pragma once

/// Finds the cores that this process may use, assigns workers to them, and binds threads.
///
/// A core here is what the operating system schedules on (a hardware thread), by its number in /proc/cpuinfo.
/// Two of them may share a physical core; the second adds little, so plans use each physical core once
/// before they use any twice.

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/archive.h"

namespace paceline::base {

// Finds the cores and the memory node (NUMA) near a PCI device, such as a GPU.

struct PciLocality {
  /// The operating system's numbers, ascending; all cores if the machine has one memory node.
  std::vector<int> cores;
  std::optional<int> numa;  ///< empty: unknown
};
template <typename A>
void fields(A& archive, In<A, PciLocality>& value) {
  each_member(archive, value.cores, value.numa);
}

/// `bus_id`: as CUDA or NVML write it, "00000000:C1:00.0" or "0000:c1:00.0". Returns nothing if the kernel
/// does not know the device or its place.
///
/// Source   the kernel's local_cpulist and numa_node. hwloc reads them too, but only with a plugin that
///          Debian does not install with it
[[nodiscard]] std::optional<PciLocality> pci_locality(
    const std::string& bus_id, const std::filesystem::path& devices = "/sys/bus/pci/devices");

/// Parses a list like "0-3,8"; returns nothing for other text.
[[nodiscard]] std::optional<std::vector<int>> parse_core_list(const std::string& text);

/// The value of the first `key` in /proc/cpuinfo, such as "model name" or "flags"; "" if there is none.
[[nodiscard]] std::string cpu_info(const std::string& key);

/// One hardware thread.
struct Core {
  int number = 0;    ///< the operating system's number
  int physical = 0;  ///< equal for hardware threads that share a physical core; counts from 0
  int sibling = 0;   ///< 0 for the first hardware thread of a physical core, 1 for the second, ...
  int package = 0;
  int numa = 0;
};

struct Topology {
  std::vector<Core> cores;  ///< allowed by the affinity mask of this process, in the machine's order
  double quota = 0;         ///< cores' worth of time that the cgroup grants; 0: no limit
  /// Threads that can run at the same time: the number of allowed cores, or the quota rounded up if that is
  /// smaller.
  [[nodiscard]] int usable() const;
  [[nodiscard]] int physical_cores() const;
};

/// Asks the system: hwloc (or only the affinity mask if hwloc fails), affinity mask, cgroup.
///
/// Cost     some 10 ms
[[nodiscard]] Topology topology();
/// The count alone, without hwloc.
///
/// Cost     some microseconds
[[nodiscard]] int usable_cores();

/// The cores of each of `workers` workers with `threads` threads each.
struct CorePlan {
  std::vector<std::vector<int>> cores;  ///< [worker]: core numbers; empty: do not pin
  bool oversubscribed = false;          ///< more threads than usable cores: no worker is pinned
  std::string note;                     ///< one sentence for record and doctor
};

/// Uses physical cores first, in the machine's order, so that a worker's cores share caches and memory; uses
/// second hardware threads only after the first ones. A pure function.
///
/// With `near` [worker], the core numbers near its GPU (empty: it has none), each worker gets cores near its
/// GPU as long as there are free ones. Remaining workers get the remaining cores. A far physical core is used
/// before the second hardware thread of a near one. The note names the workers whose cores are far from their
/// GPU.
[[nodiscard]] CorePlan plan_cores(const Topology& topology, int workers, int threads,
                                  std::span<const std::vector<int>> near = {});
/// The same for this machine.
[[nodiscard]] CorePlan plan_cores(int workers, int threads, std::span<const std::vector<int>> near = {});

/// Binds the calling thread, and threads that it creates later, to `cores`. Returns nothing on success, else
/// why the system refused. Does nothing if `cores` is empty.
[[nodiscard]] std::optional<std::string> bind_current_thread(const std::vector<int>& cores);

/// The core numbers that the calling thread's affinity mask allows.
[[nodiscard]] std::vector<int> current_affinity();

}  // namespace paceline::base

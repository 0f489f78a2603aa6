#pragma once

/// Finds the cores and the memory node (NUMA) near a PCI device, such as a GPU.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace paceline::base {

struct PciLocality {
  /// The operating system's numbers, ascending; all cores if the machine has one memory node.
  std::vector<int> cores;
  std::optional<int> numa;  ///< empty: unknown
};

/// `bus_id`: as CUDA or NVML write it, "00000000:C1:00.0" or "0000:c1:00.0". Returns nothing if the kernel
/// does not know the device or its place.
///
/// Source   the kernel's local_cpulist and numa_node. hwloc reads them too, but only with a plugin that
///          Debian does not install with it
[[nodiscard]] std::optional<PciLocality> pci_locality(
    const std::string& bus_id, const std::filesystem::path& devices = "/sys/bus/pci/devices");

/// Parses a list like "0-3,8"; returns nothing for other text.
[[nodiscard]] std::optional<std::vector<int>> parse_core_list(const std::string& text);

}  // namespace paceline::base

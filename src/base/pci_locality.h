#pragma once

/// Where in the machine a PCI device sits: the cores and the memory node near it.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace paceline::base {

struct PciLocality {
  std::vector<int>
      cores;  ///< the operating system's numbers, ascending; all of the machine where it has one node
  std::optional<int> numa;  ///< none: the machine does not say
};

/// `bus_id` as CUDA or NVML write it, "00000000:C1:00.0" or "0000:c1:00.0". Nothing where the kernel knows no
/// such device or does not say where it is.
///
/// Source   the kernel's local_cpulist and numa_node, which hwloc reads too, but only with a plugin that
/// Debian
///          does not install with it
[[nodiscard]] std::optional<PciLocality> pci_locality(
    const std::string& bus_id, const std::filesystem::path& devices = "/sys/bus/pci/devices");

/// "0-3,8" as numbers; nothing for what is no such list.
[[nodiscard]] std::optional<std::vector<int>> parse_core_list(const std::string& text);

}  // namespace paceline::base

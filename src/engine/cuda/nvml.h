#pragma once

/// The GPUs of this host as the driver's library NVML sees them, for `paceline doctor` and records.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/gpu_reading.h"
#include "engine/cuda/api/nvml.h"

namespace paceline::engine::cuda {

using GpuProcess = base::GpuProcessReading;

/// How a GPU reaches others.
struct GpuLinks {
  std::vector<std::pair<int, int>> nvlinks;       ///< (index of the other GPU, number of active links)
  int to_switch = 0;                              ///< active links to an NVSwitch, which reaches all others
  std::vector<std::pair<int, std::string>> pcie;  ///< (index, "through one PCIe switch"), without NVLinks
};

/// What is not told is empty, and `unknown` says why.
struct GpuFacts {
  int index = 0;  ///< NVML's, by PCI bus; CUDA may count otherwise
  std::string name;
  std::string uuid;    ///< "GPU-4f2a..."
  std::string bus_id;  ///< "00000000:01:00.0"
  std::optional<std::int64_t> memory_bytes, used_memory_bytes;
  std::optional<int> compute_capability;  ///< 90 for 9.0
  std::optional<int> busy_percent;        ///< of the last second: some kernel ran, which is all that it says
  std::optional<double> watts, watts_limit;
  std::optional<int> celsius;
  std::optional<int> fan_percent;        ///< of its highest speed; GPUs of servers have no fan of their own
  std::optional<int> performance_state;  ///< 0 (fastest) to 15
  std::optional<bool> ecc, mig;          ///< error-correcting memory, cut into instances: on or off, now
  std::optional<bool> drives_display;
  std::optional<base::PcieLink> pcie, pcie_most;  ///< now, and what GPU and slot can do
  std::optional<std::uint32_t> brakes;            ///< what holds its clocks back now: base::bit(GpuBrake)
  std::optional<std::int64_t> memory_errors;  ///< that could not be corrected, since the driver was loaded
  std::optional<bool> needs_reset, has_failed_rows;  ///< rows of its memory: to be exchanged, or none left to
  std::string compute_mode;  ///< "default" (shared by processes), "exclusive process", "prohibited"
  GpuLinks links;
  std::vector<GpuProcess> processes;
  std::vector<std::string> unknown;  ///< "nvmlDeviceGetPowerUsage: Unknown Error"
};

struct GpuList {
  std::string driver;    ///< "580.65.06"
  int cuda_version = 0;  ///< the newest CUDA that the driver serves: 13000 for 13.0
  std::vector<GpuFacts> gpus;
  std::vector<std::string> unknown;
};

/// Asks for all GPUs. Takes some milliseconds a GPU, more when no process has it open.
///
/// Errors   Error(device), one sentence, when NVML does not start or does not count the GPUs. What it does
/// not
///          tell of one of them is in `unknown`
[[nodiscard]] GpuList list_gpus(const NvmlApi& api);

/// The GPUs that CUDA would see, cuda:0 first, where it cannot be asked itself: by NVML's order and the value
/// of CUDA_VISIBLE_DEVICES (nullptr: all), as numbers or beginnings of UUIDs, up to the first that is
/// neither.
[[nodiscard]] std::vector<std::string> visible_bus_ids(const GpuList& list, const char* visible);

/// Whether two PCI bus ids name one device; CUDA writes its domain shorter than NVML.
[[nodiscard]] bool same_bus_id(const std::string& left, const std::string& right);

}  // namespace paceline::engine::cuda

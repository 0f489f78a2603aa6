#pragma once

/// Lists the GPUs of this host, as the driver's library NVML sees them, for `paceline doctor` and records.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/gpu_reading.h"
#include "base/shared_library.h"
#include "engine/cuda/nvml/api.h"

namespace paceline::engine::cuda {

using GpuProcess = base::GpuProcessReading;

/// How a GPU is connected to the other GPUs.
struct GpuLinks {
  std::map<int, int> nvlinks;  ///< by index of the other GPU: the number of active links
  int to_switch = 0;           ///< active links to an NVSwitch, which connects all GPUs
  /// (index, "through one PCIe switch") of GPUs without an NVLink to this one.
  std::vector<std::pair<int, std::string>> pcie;
};

/// What NVML says of a GPU. What it does not say is empty, and `unknown` says why.
struct GpuFacts {
  int index = 0;  ///< NVML's index, in order of the PCI bus; CUDA's may differ
  std::string name;
  std::string uuid;    ///< "GPU-4f2a..."
  std::string bus_id;  ///< "00000000:01:00.0"
  std::optional<std::int64_t> memory_bytes, used_memory_bytes;
  std::optional<int> compute_capability;  ///< 90 for 9.0
  std::optional<int> busy_percent;        ///< share of the last second in which any kernel ran, however small
  std::optional<double> watts, watts_limit;
  std::optional<int> celsius;
  std::optional<int> fan_percent;        ///< of the highest speed; empty for GPUs without a fan
  std::optional<int> performance_state;  ///< 0 (fastest) to 15
  /// Whether memory corrects errors, and whether the GPU is cut into instances, now.
  std::optional<bool> ecc, mig;
  std::optional<bool> drives_display;
  std::optional<base::PcieLink> pcie, pcie_most;  ///< now, and the most that GPU and slot can do
  std::optional<std::uint32_t> brakes;  ///< why its clocks are lowered now: a mask of base::bit(GpuBrake)
  std::optional<std::int64_t> memory_errors;  ///< uncorrected errors since the driver was loaded
  /// memory rows wait for a reset to be replaced; spare rows are used up
  std::optional<bool> needs_reset, has_failed_rows;
  std::string compute_mode;  ///< "default" (shared by processes), "exclusive process", "prohibited"
  GpuLinks links;
  std::vector<GpuProcess> processes;
  std::vector<std::string> unknown;  ///< "nvmlDeviceGetPowerUsage: Unknown Error"
};
/// What the first process judges of all ranks' GPUs (cluster/gpu_table.h).
template <typename A>
void fields(A& archive, base::In<A, GpuFacts>& value) {
  base::each_member(archive, value.index, value.name, value.uuid, value.bus_id, value.performance_state,
                    value.mig, value.pcie, value.pcie_most, value.brakes, value.memory_errors,
                    value.needs_reset, value.has_failed_rows, value.compute_mode, value.processes,
                    value.unknown);
}

struct GpuList {
  std::string driver;    ///< "580.65.06"
  int cuda_version = 0;  ///< the newest CUDA that the driver supports: 13000 for 13.0
  std::vector<GpuFacts> gpus;
  std::vector<std::string> unknown;
};

/// Asks NVML for all GPUs.
///
/// Cost     some milliseconds for each GPU, more for a GPU that no process has open
/// Errors   Error(device), one sentence, if NVML does not start or does not count the GPUs. What it does not
///          say of one GPU is no error: it is in GpuFacts::unknown
[[nodiscard]] GpuList list_gpus(const NvmlApi& api);

/// Predicts the GPUs that CUDA would see, cuda:0 first, without calling CUDA. `visible`: the value of
/// CUDA_VISIBLE_DEVICES (nullptr: all GPUs), a list of NVML's indices or beginnings of UUIDs; as in CUDA, the
/// list ends at the first invalid entry.
[[nodiscard]] std::vector<std::string> visible_bus_ids(const GpuList& list, const char* visible);

/// Whether two PCI bus ids name the same device: CUDA writes the domain with fewer digits than NVML.
[[nodiscard]] bool same_bus_id(const std::string& left, const std::string& right);

// Describes the GPUs of this host as text, for `paceline doctor` and for records.

struct TextRow {
  std::string label;  ///< "GPU 0"; empty: continues the row before
  std::string text;
};

/// Rows for this host's GPUs (name, memory, links, processes), or one row that says why they are not known;
/// then rows that say which GPUs CUDA_VISIBLE_DEVICES leaves and whether `--device cuda` works. A missing
/// driver or GPU is not an error here.
[[nodiscard]] std::vector<TextRow> describe_gpus();

/// The same for records: a sentence for each GPU and for each process on it, or one sentence that says why
/// nothing is known.
///
/// Cost     some milliseconds for each GPU
[[nodiscard]] std::vector<std::string> gpu_facts();

/// The combined bandwidth of a GPU's NVLinks in one direction.
struct NvlinkLimit {
  double bytes_per_s = 0;
  std::string made_of;  ///< "18 links of 25 GB/s, by NVIDIA's data sheets"
};
/// The limit of the GPU with the fewest links. Empty if NVML reports no links or an unknown generation.
[[nodiscard]] std::optional<NvlinkLimit> nvlink_one_way();
[[nodiscard]] std::optional<NvlinkLimit> nvlink_one_way(const GpuList& list);

/// The rows for `list`. `cuda_bus_ids`: the PCI bus id of each device that CUDA sees, cuda:0 first; empty if
/// CUDA could not be asked.
[[nodiscard]] std::vector<TextRow> describe_gpus(const GpuList& list,
                                                 const std::vector<std::string>& cuda_bus_ids);

/// A row with the value of CUDA_VISIBLE_DEVICES; empty if it is not set.
[[nodiscard]] std::optional<TextRow> describe_visibility(const base::EnvironmentLookup& environment);

}  // namespace paceline::engine::cuda

#pragma once

/// Readings of a GPU: what changes while a run lasts (GpuReading), and what does not (GpuIdentity); and
/// GpuSource, the interface that reads them.
///
/// It stands in base because engine/cuda, which asks the driver, and measure, which records the readings,
/// must not include each other.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/archive.h"

namespace paceline::base {

/// The reason why a GPU's clocks are lowered.
enum class GpuBrake {
  power_cap,          ///< the power limit
  thermal_software,   ///< the driver lowers the clocks to cool the GPU
  thermal_hardware,   ///< the hardware does, by half or more, since the GPU is too hot
  power_brake,        ///< the power supply demands it
  hardware_slowdown,  ///< thermal_hardware, power_brake, or another reason of the board
  fixed_clocks,       ///< set by a user (nvidia-smi --lock-gpu-clocks, application clocks)
  sync_boost,         ///< another GPU of the sync-boost group is slower
  display_clocks,
};
inline constexpr std::array<std::string_view, 8> kGpuBrakes{
    "power cap",         "thermal (driver)",   "thermal (hardware)", "power brake",
    "hardware slowdown", "clocks set by hand", "sync boost",         "display clocks"};
[[nodiscard]] constexpr std::uint32_t bit(GpuBrake brake) { return 1U << static_cast<unsigned>(brake); }

struct GpuProcessReading {
  int pid = 0;       ///< the driver's process id, which may differ from the one seen inside a container
  std::string name;  ///< empty: unknown, for example a process of another container
  std::optional<std::int64_t> memory_bytes;
};
template <typename A>
void fields(A& archive, In<A, GpuProcessReading>& value) {
  each_member(archive, value.pid, value.name, value.memory_bytes);
}

struct PcieLink {
  int generation = 0, width = 0;  ///< width: number of lanes
};
template <typename A>
void fields(A& archive, In<A, PcieLink>& value) {
  archive("generation", value.generation);
  archive("width", value.width);
}

/// The state of a GPU at one moment. What the driver does not say is empty.
struct GpuReading {
  /// Fractions of the driver's last sample period (1/6 to 1 s) in which any kernel ran, and in which memory
  /// was read or written.
  std::optional<double> utilisation, memory_utilisation;
  std::optional<std::int64_t> used_bytes;  ///< memory in use by all processes
  std::optional<double> watts;             ///< mean over the last second, or now, depending on the GPU
  std::optional<double> joules;            ///< energy used since the driver was loaded
  std::optional<int> sm_mhz, memory_mhz;   ///< clocks
  std::optional<int> celsius;
  std::optional<std::uint32_t> brakes;  ///< bit(GpuBrake)
  std::optional<PcieLink> pcie;
  std::optional<std::vector<GpuProcessReading>> processes;  ///< those that compute on it
  std::vector<int> xids;  ///< numbers of the driver's Xid errors (GPU error reports) since the last reading
  std::vector<std::string> failures;  ///< "nvmlDeviceGetPowerUsage: Unknown Error"
};

/// The properties of a GPU that do not change during a run.
struct GpuIdentity {
  int index = 0;                   ///< the driver's index
  std::vector<int> workers;        ///< the workers of this process that compute on it
  std::string name, uuid, bus_id;  ///< "NVIDIA H100 80GB HBM3", "GPU-4f...", "00000000:01:00.0"
  std::optional<std::int64_t> memory_bytes;
  std::optional<double> watts_limit;
  std::optional<int> sm_mhz_most, memory_mhz_most;
  std::optional<PcieLink> pcie_most;  ///< the fastest that GPU and slot support
  std::optional<int> nvlinks;         ///< active links
  std::vector<std::string> failures;
};

/// Reads the GPUs of a run.
///
/// Threads  one at a time
class GpuSource {
 public:
  virtual ~GpuSource() = default;
  [[nodiscard]] virtual const std::vector<GpuIdentity>& gpus() const = 0;
  /// The current state of `gpus()[gpu]`. Values that the GPU does not give are no error.
  ///
  /// Cost     some milliseconds
  [[nodiscard]] virtual GpuReading read(std::size_t gpu) = 0;
};

}  // namespace paceline::base

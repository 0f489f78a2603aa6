#pragma once

/// What a GPU says of itself: at one moment, and once and for all.
///
/// Between those who ask its driver (engine/cuda) and those who keep and show what it said (measure): neither
/// may know the other.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::base {

/// What holds a GPU's clocks below what it could reach.
enum class GpuBrake {
  power_cap,          ///< its power limit
  thermal_software,   ///< the driver cools it
  thermal_hardware,   ///< too hot: its clocks are halved, or worse
  power_brake,        ///< the power supply asks for less
  hardware_slowdown,  ///< one of the two before, or another reason of the board's
  fixed_clocks,       ///< somebody has set lower clocks (nvidia-smi --lock-gpu-clocks, application clocks)
  sync_boost,         ///< another GPU of its group holds it back
  display_clocks,
};
inline constexpr std::array<std::string_view, 8> kGpuBrakes{
    "power cap",         "thermal (driver)",   "thermal (hardware)", "power brake",
    "hardware slowdown", "clocks set by hand", "sync boost",         "display clocks"};
[[nodiscard]] constexpr std::uint32_t bit(GpuBrake brake) { return 1U << static_cast<unsigned>(brake); }

struct GpuProcessReading {
  int pid = 0;       ///< as the driver numbers it, which in a container may not be as this process does
  std::string name;  ///< empty: not told, as of other containers
  std::optional<std::int64_t> memory_bytes;
};

struct PcieLink {
  int generation = 0, width = 0;
};

/// At one moment. What is not told is empty.
struct GpuReading {
  /// Parts of the last sample period of the driver's (1/6 to 1 s) in which any kernel ran, and in which any
  /// memory was read or written.
  std::optional<double> utilisation, memory_utilisation;
  std::optional<std::int64_t> used_bytes;  ///< of its memory, by all processes
  std::optional<double> watts;             ///< mean over the last second, or now: as the GPU has it
  std::optional<double> joules;            ///< since the driver was loaded
  std::optional<int> sm_mhz, memory_mhz;   ///< clocks
  std::optional<int> celsius;
  std::optional<std::uint32_t> brakes;  ///< bit(GpuBrake)
  std::optional<PcieLink> pcie;
  std::optional<std::vector<GpuProcessReading>> processes;  ///< that compute on it
  std::vector<int> xids;              ///< numbers of the driver's Xid errors since the reading before
  std::vector<std::string> failures;  ///< "nvmlDeviceGetPowerUsage: Unknown Error"
};

/// What does not change while a run lasts.
struct GpuIdentity {
  int index = 0;                   ///< the driver's number
  std::vector<int> workers;        ///< of this process, that compute on it
  std::string name, uuid, bus_id;  ///< "NVIDIA H100 80GB HBM3", "GPU-4f...", "00000000:01:00.0"
  std::optional<std::int64_t> memory_bytes;
  std::optional<double> watts_limit;
  std::optional<int> sm_mhz_most, memory_mhz_most;
  std::optional<PcieLink> pcie_most;  ///< that GPU and slot can do together
  std::optional<int> nvlinks;         ///< active ones
  std::vector<std::string> failures;
};

/// GPUs that can be read.
///
/// Threads  one at a time
class GpuSource {
 public:
  virtual ~GpuSource() = default;
  [[nodiscard]] virtual const std::vector<GpuIdentity>& gpus() const = 0;
  /// What `gpus()[gpu]` is at now. Never throws for what a GPU does not tell. Cost: some milliseconds.
  [[nodiscard]] virtual GpuReading read(std::size_t gpu) = 0;
};

}  // namespace paceline::base

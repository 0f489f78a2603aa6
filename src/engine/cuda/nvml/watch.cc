#include "engine/cuda/nvml/watch.h"

#include <array>
#include <utility>

namespace paceline::engine::cuda {
namespace {

/// Asks NVML for a number and converts it; empty if NVML refuses.
template <typename Number, typename... Parameters, typename... Arguments>
std::optional<Number> number_of(NvmlAsker& ask, const char* call, NvmlStatus (*function)(Parameters...),
                                Arguments... arguments) {
  unsigned value = 0;
  if (!ask(call, function, arguments..., &value)) return std::nullopt;
  return static_cast<Number>(value);
}

std::optional<double> scaled(std::optional<double> value, double by) {
  return value ? std::optional(*value * by) : std::nullopt;
}

std::optional<base::PcieLink> link_of(std::optional<int> generation, std::optional<int> width) {
  if (!generation || !width) return std::nullopt;
  return base::PcieLink{.generation = *generation, .width = *width};
}

std::optional<int> active_nvlinks(const NvmlApi& api, NvmlDevice device) {
  std::optional<int> count;
  for (unsigned link = 0; link < NVML_NVLINK_MAX_LINKS; ++link) {
    int active = 0;
    if (api.ask(api.nvmlDeviceGetNvLinkState, device, link, &active) != NVML_SUCCESS) break;
    count = count.value_or(0) + (active != 0 ? 1 : 0);
  }
  return count;
}

class NvmlSource final : public base::GpuSource {
 public:
  NvmlSource(const NvmlApi& api, const std::vector<GpuOfRun>& gpus) : api_(api), session_(api_) {
    if (api_.ask(api_.nvmlEventSetCreate, &events_) != NVML_SUCCESS) events_ = nullptr;
    for (const auto& gpu : gpus) open(gpu);
  }
  ~NvmlSource() override {
    if (events_ != nullptr) (void)api_.ask(api_.nvmlEventSetFree, events_);
  }
  NvmlSource(const NvmlSource&) = delete;
  NvmlSource& operator=(const NvmlSource&) = delete;
  [[nodiscard]] const std::vector<base::GpuIdentity>& gpus() const override { return gpus_; }
  [[nodiscard]] base::GpuReading read(std::size_t gpu) override;

 private:
  void open(const GpuOfRun& gpu);
  /// Reads the Xid errors since the last call, and assigns them to their GPUs.
  void take_events();

  const NvmlApi api_;
  const NvmlSession session_;
  std::vector<NvmlDevice> devices_;  ///< null: not found
  std::vector<base::GpuIdentity> gpus_;
  NvmlEventSet events_ = nullptr;       ///< null: the driver does not support events
  std::vector<std::vector<int>> xids_;  ///< by GPU: errors not returned by read() yet
};

void NvmlSource::take_events() {
  constexpr int kMostAtOnce = 64;  // a GPU that reports errors without end must not block this thread
  NvmlEvent event{};
  for (int i = 0; i < kMostAtOnce && events_ != nullptr; ++i) {
    if (api_.ask(api_.nvmlEventSetWait_v2, events_, &event, 0U) != NVML_SUCCESS) return;
    for (std::size_t gpu = 0; gpu < devices_.size(); ++gpu)
      if (devices_[gpu] == event.device && (event.type & nvmlEventTypeXidCriticalError) != 0)
        xids_[gpu].push_back(static_cast<int>(event.data));
  }
}

void NvmlSource::open(const GpuOfRun& gpu) {
  base::GpuIdentity identity{.index = -1, .workers = gpu.workers, .bus_id = gpu.bus_id};
  NvmlAsker ask(api_, identity.failures);
  NvmlDevice device = nullptr;
  const auto found = api_.ask(api_.nvmlDeviceGetHandleByPciBusId_v2, gpu.bus_id.c_str(), &device);
  devices_.push_back(found == NVML_SUCCESS ? device : nullptr);
  xids_.emplace_back();
  if (found != NVML_SUCCESS) {
    identity.failures.push_back(describe_nvml_error(api_, found, "nvmlDeviceGetHandleByPciBusId") + ", GPU " +
                                gpu.bus_id);
    gpus_.push_back(std::move(identity));
    return;
  }
  std::array<char, 128> text{};
  if (ask("nvmlDeviceGetName", api_.nvmlDeviceGetName, device, text.data(), 127U))
    identity.name = text.data();
  if (ask("nvmlDeviceGetUUID", api_.nvmlDeviceGetUUID, device, text.data(), 127U))
    identity.uuid = text.data();
  if (NvmlPci pci{}; ask("nvmlDeviceGetPciInfo", api_.nvmlDeviceGetPciInfo_v3, device, &pci))
    identity.bus_id = pci.bus_id;
  identity.index =
      number_of<int>(ask, "nvmlDeviceGetIndex", api_.nvmlDeviceGetIndex, device).value_or(identity.index);
  if (NvmlMemory memory{}; ask("nvmlDeviceGetMemoryInfo", api_.nvmlDeviceGetMemoryInfo, device, &memory))
    identity.memory_bytes = static_cast<std::int64_t>(memory.total);
  identity.watts_limit = scaled(
      number_of<double>(ask, "nvmlDeviceGetEnforcedPowerLimit", api_.nvmlDeviceGetEnforcedPowerLimit, device),
      1e-3);
  const auto most = [&](int clock) {
    return number_of<int>(ask, "nvmlDeviceGetMaxClockInfo", api_.nvmlDeviceGetMaxClockInfo, device, clock);
  };
  identity.sm_mhz_most = most(NVML_CLOCK_SM);
  identity.memory_mhz_most = most(NVML_CLOCK_MEM);
  identity.pcie_most = link_of(
      number_of<int>(ask, "nvmlDeviceGetMaxPcieLinkGeneration", api_.nvmlDeviceGetMaxPcieLinkGeneration,
                     device),
      number_of<int>(ask, "nvmlDeviceGetMaxPcieLinkWidth", api_.nvmlDeviceGetMaxPcieLinkWidth, device));
  identity.nvlinks = active_nvlinks(api_, device);
  if (events_ != nullptr)
    (void)ask("nvmlDeviceRegisterEvents", api_.nvmlDeviceRegisterEvents, device,
              nvmlEventTypeXidCriticalError, events_);
  gpus_.push_back(std::move(identity));
}

base::GpuReading NvmlSource::read(std::size_t gpu) {
  base::GpuReading reading;
  const NvmlDevice device = devices_[gpu];
  if (device == nullptr) return reading;
  take_events();
  reading.xids = std::exchange(xids_[gpu], {});
  NvmlAsker ask(api_, reading.failures);
  if (NvmlUtilization busy{};
      ask("nvmlDeviceGetUtilizationRates", api_.nvmlDeviceGetUtilizationRates, device, &busy)) {
    reading.utilisation = busy.gpu / 100.0;
    reading.memory_utilisation = busy.memory / 100.0;
  }
  if (NvmlMemory memory{}; ask("nvmlDeviceGetMemoryInfo", api_.nvmlDeviceGetMemoryInfo, device, &memory))
    reading.used_bytes = static_cast<std::int64_t>(memory.used);
  reading.watts =
      scaled(number_of<double>(ask, "nvmlDeviceGetPowerUsage", api_.nvmlDeviceGetPowerUsage, device), 1e-3);
  unsigned long long wide = 0;
  if (ask("nvmlDeviceGetTotalEnergyConsumption", api_.nvmlDeviceGetTotalEnergyConsumption, device, &wide))
    reading.joules = static_cast<double>(wide) * 1e-3;
  const auto clock = [&](int which) {
    return number_of<int>(ask, "nvmlDeviceGetClockInfo", api_.nvmlDeviceGetClockInfo, device, which);
  };
  reading.sm_mhz = clock(NVML_CLOCK_SM);
  reading.memory_mhz = clock(NVML_CLOCK_MEM);
  reading.celsius = number_of<int>(ask, "nvmlDeviceGetTemperature", api_.nvmlDeviceGetTemperature, device,
                                   NVML_TEMPERATURE_GPU);
  if (ask.answered("nvmlDeviceGetCurrentClocksEventReasons", ask_clock_reasons(api_, device, &wide)))
    reading.brakes = brakes_of(wide);
  reading.pcie = link_of(
      number_of<int>(ask, "nvmlDeviceGetCurrPcieLinkGeneration", api_.nvmlDeviceGetCurrPcieLinkGeneration,
                     device),
      number_of<int>(ask, "nvmlDeviceGetCurrPcieLinkWidth", api_.nvmlDeviceGetCurrPcieLinkWidth, device));
  reading.processes = processes_on(api_, device, ask);
  return reading;
}

}  // namespace

std::uint32_t brakes_of(unsigned long long reasons) {
  using enum base::GpuBrake;
  constexpr std::array<std::pair<unsigned long long, base::GpuBrake>, 8> kBits{
      {{nvmlClocksEventReasonSwPowerCap, power_cap},
       {nvmlClocksEventReasonSwThermalSlowdown, thermal_software},
       {nvmlClocksThrottleReasonHwThermalSlowdown, thermal_hardware},
       {nvmlClocksThrottleReasonHwPowerBrakeSlowdown, power_brake},
       {nvmlClocksThrottleReasonHwSlowdown, hardware_slowdown},
       {nvmlClocksEventReasonApplicationsClocksSetting, fixed_clocks},
       {nvmlClocksEventReasonSyncBoost, sync_boost},
       {nvmlClocksEventReasonDisplayClockSetting, display_clocks}}};
  std::uint32_t brakes = 0;
  for (const auto& [reason, brake] : kBits)
    if ((reasons & reason) != 0) brakes |= base::bit(brake);
  return brakes;
}

NvmlStatus ask_clock_reasons(const NvmlApi& api, NvmlDevice device, unsigned long long* bits) {
  const auto status = api.ask(api.nvmlDeviceGetCurrentClocksEventReasons, device, bits);
  return status == NVML_ERROR_FUNCTION_NOT_FOUND
             ? api.ask(api.nvmlDeviceGetCurrentClocksThrottleReasons, device, bits)
             : status;
}

std::unique_ptr<base::GpuSource> open_gpu_source(const NvmlApi& api, const std::vector<GpuOfRun>& gpus) {
  return std::make_unique<NvmlSource>(api, gpus);
}

}  // namespace paceline::engine::cuda

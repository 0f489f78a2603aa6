#include "engine/cuda/nvml/watch.h"

#include <array>
#include <utility>

namespace paceline::engine::cuda {
namespace {

std::optional<int> active_nvlinks(const NvmlApi& api, NvmlDevice device) {
  std::optional<int> count;
  for (unsigned link = 0; link < NVML_NVLINK_MAX_LINKS; ++link) {
    int active = 0;
    if (api.nvmlDeviceGetNvLinkState(device, link, &active) != NVML_SUCCESS) break;
    count = count.value_or(0) + (active != 0 ? 1 : 0);
  }
  return count;
}

class NvmlSource final : public base::GpuSource {
 public:
  NvmlSource(const NvmlApi& api, const std::vector<GpuOfRun>& gpus) : api_(api), session_(api_) {
    if (api_.nvmlEventSetCreate(&events_) != NVML_SUCCESS) events_ = nullptr;
    for (const auto& gpu : gpus) open(gpu);
  }
  ~NvmlSource() override {
    if (events_ != nullptr) (void)api_.nvmlEventSetFree(events_);
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
    if (api_.nvmlEventSetWait_v2(events_, &event, 0U) != NVML_SUCCESS) return;
    for (std::size_t gpu = 0; gpu < devices_.size(); ++gpu)
      if (devices_[gpu] == event.device && (event.type & nvmlEventTypeXidCriticalError) != 0)
        xids_[gpu].push_back(static_cast<int>(event.data));
  }
}

void NvmlSource::open(const GpuOfRun& gpu) {
  base::GpuIdentity identity{.index = -1, .workers = gpu.workers, .bus_id = gpu.bus_id};
  NvmlAsker ask(api_, identity.failures);
  NvmlDevice device = nullptr;
  const auto found = api_.nvmlDeviceGetHandleByPciBusId_v2(gpu.bus_id.c_str(), &device);
  devices_.push_back(found == NVML_SUCCESS ? device : nullptr);
  xids_.emplace_back();
  if (found != NVML_SUCCESS) {
    identity.failures.push_back(describe_nvml_error(api_, found, api_.nvmlDeviceGetHandleByPciBusId_v2.name) +
                                ", GPU " + gpu.bus_id);
    gpus_.push_back(std::move(identity));
    return;
  }
  identity.name = ask.text(api_.nvmlDeviceGetName, device);
  identity.uuid = ask.text(api_.nvmlDeviceGetUUID, device);
  if (NvmlPci pci{}; ask(api_.nvmlDeviceGetPciInfo_v3, device, &pci)) identity.bus_id = pci.bus_id;
  identity.index = ask.number<int>(api_.nvmlDeviceGetIndex, device).value_or(identity.index);
  if (NvmlMemory memory{}; ask(api_.nvmlDeviceGetMemoryInfo, device, &memory))
    identity.memory_bytes = static_cast<std::int64_t>(memory.total);
  identity.watts_limit = ask.thousandths(api_.nvmlDeviceGetEnforcedPowerLimit, device);
  identity.sm_mhz_most = ask.number<int>(api_.nvmlDeviceGetMaxClockInfo, device, NVML_CLOCK_SM);
  identity.memory_mhz_most = ask.number<int>(api_.nvmlDeviceGetMaxClockInfo, device, NVML_CLOCK_MEM);
  identity.pcie_most =
      ask.link(api_.nvmlDeviceGetMaxPcieLinkGeneration, api_.nvmlDeviceGetMaxPcieLinkWidth, device);
  identity.nvlinks = active_nvlinks(api_, device);
  if (events_ != nullptr)
    (void)ask(api_.nvmlDeviceRegisterEvents, device, nvmlEventTypeXidCriticalError, events_);
  gpus_.push_back(std::move(identity));
}

base::GpuReading NvmlSource::read(std::size_t gpu) {
  base::GpuReading reading;
  const NvmlDevice device = devices_[gpu];
  if (device == nullptr) return reading;
  take_events();
  reading.xids = std::exchange(xids_[gpu], {});
  NvmlAsker ask(api_, reading.failures);
  if (NvmlUtilization busy{}; ask(api_.nvmlDeviceGetUtilizationRates, device, &busy)) {
    reading.utilisation = busy.gpu / 100.0;
    reading.memory_utilisation = busy.memory / 100.0;
  }
  if (NvmlMemory memory{}; ask(api_.nvmlDeviceGetMemoryInfo, device, &memory))
    reading.used_bytes = static_cast<std::int64_t>(memory.used);
  reading.watts = ask.thousandths(api_.nvmlDeviceGetPowerUsage, device);
  if (unsigned long long millijoules = 0; ask(api_.nvmlDeviceGetTotalEnergyConsumption, device, &millijoules))
    reading.joules = static_cast<double>(millijoules) * 1e-3;
  reading.sm_mhz = ask.number<int>(api_.nvmlDeviceGetClockInfo, device, NVML_CLOCK_SM);
  reading.memory_mhz = ask.number<int>(api_.nvmlDeviceGetClockInfo, device, NVML_CLOCK_MEM);
  reading.celsius = ask.number<int>(api_.nvmlDeviceGetTemperature, device, NVML_TEMPERATURE_GPU);
  reading.brakes = brakes_on(api_, device, ask);
  reading.pcie =
      ask.link(api_.nvmlDeviceGetCurrPcieLinkGeneration, api_.nvmlDeviceGetCurrPcieLinkWidth, device);
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

std::optional<std::uint32_t> brakes_on(const NvmlApi& api, NvmlDevice device, NvmlAsker& ask) {
  unsigned long long reasons = 0;
  auto status = api.nvmlDeviceGetCurrentClocksEventReasons(device, &reasons);
  if (status == NVML_ERROR_FUNCTION_NOT_FOUND)  // as in drivers before 535
    status = api.nvmlDeviceGetCurrentClocksThrottleReasons(device, &reasons);
  if (!ask.answered(api.nvmlDeviceGetCurrentClocksEventReasons.name, status)) return std::nullopt;
  return brakes_of(reasons);
}

std::unique_ptr<base::GpuSource> open_gpu_source(const NvmlApi& api, const std::vector<GpuOfRun>& gpus) {
  return std::make_unique<NvmlSource>(api, gpus);
}

}  // namespace paceline::engine::cuda

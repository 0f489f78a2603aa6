#include "engine/cuda/device/fake_nvml.h"

#include <cstdio>
#include <utility>

#include "base/error.h"
#include "engine/cuda/nvml/facts.h"

namespace paceline::engine::cuda::test {
namespace {

FakeNvml* living_nvml = nullptr;

const FakeGpu& gpu_of(NvmlDevice device) { return *reinterpret_cast<const FakeGpu*>(device); }

void write(const std::string& text, char* out, std::size_t bytes) {
  std::snprintf(out, bytes, "%s", text.c_str());
}

/// Sets `to` when the call succeeds.
template <typename Value>
NvmlStatus give(const char* call, Value* to, Value value) {
  const auto status = living_nvml->called(call);
  if (status == NVML_SUCCESS) *to = value;
  return status;
}

NvmlStatus give_text(const char* call, const std::string& text, char* out, unsigned bytes) {
  const auto status = living_nvml->called(call);
  if (status == NVML_SUCCESS) write(text, out, bytes);
  return status;
}

NvmlStatus processes(NvmlDevice device, unsigned* count, NvmlProcess* out) {
  const auto status = living_nvml->called("nvmlDeviceGetComputeRunningProcesses");
  if (status != NVML_SUCCESS) return status;
  const auto& all = gpu_of(device).processes;
  const bool fit = all.size() <= *count;
  *count = static_cast<unsigned>(all.size());
  if (!fit) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::copy(all.begin(), all.end(), out);
  return NVML_SUCCESS;
}

NvmlStatus link_state(NvmlDevice device, unsigned link, int* active) {
  if (gpu_of(device).nvlinks.empty()) return NVML_ERROR_NOT_SUPPORTED;
  if (link >= gpu_of(device).nvlinks.size()) return NVML_ERROR_INVALID_ARGUMENT;
  return give("nvmlDeviceGetNvLinkState", active, gpu_of(device).nvlinks[link].empty() ? 0 : 1);
}

NvmlStatus link_type(NvmlDevice device, unsigned link, int* type) {
  return give("nvmlDeviceGetNvLinkRemoteDeviceType", type,
              gpu_of(device).nvlinks[link] == "switch" ? NVML_NVLINK_DEVICE_TYPE_SWITCH
                                                       : NVML_NVLINK_DEVICE_TYPE_GPU);
}

NvmlStatus link_pci(NvmlDevice device, unsigned link, NvmlPci* pci) {
  const auto status = living_nvml->called("nvmlDeviceGetNvLinkRemotePciInfo");
  if (status == NVML_SUCCESS) write(gpu_of(device).nvlinks[link], pci->bus_id, sizeof pci->bus_id);
  return status;
}

NvmlStatus pci_info(NvmlDevice device, NvmlPci* pci) {
  const auto status = living_nvml->called("nvmlDeviceGetPciInfo");
  if (status == NVML_SUCCESS) write(gpu_of(device).bus_id, pci->bus_id, sizeof pci->bus_id);
  return status;
}

NvmlStatus handle(unsigned index, NvmlDevice* device) {
  const auto status = living_nvml->called("nvmlDeviceGetHandleByIndex");
  if (status != NVML_SUCCESS) return status;
  if (living_nvml->gpus[index].lost) return 15;  // NVML_ERROR_GPU_IS_LOST
  *device = reinterpret_cast<NvmlDevice>(&living_nvml->gpus[index]);
  return NVML_SUCCESS;
}

NvmlStatus handle_by_bus_id(const char* bus_id, NvmlDevice* device) {
  const auto status = living_nvml->called("nvmlDeviceGetHandleByPciBusId");
  if (status != NVML_SUCCESS) return status;
  for (auto& gpu : living_nvml->gpus)
    if (same_bus_id(gpu.bus_id, bus_id)) {
      *device = reinterpret_cast<NvmlDevice>(&gpu);
      return gpu.lost ? 15 : NVML_SUCCESS;
    }
  return 6;  // NVML_ERROR_NOT_FOUND
}

NvmlStatus process_name(unsigned pid, char* name, unsigned bytes) {
  const auto found = living_nvml->process_names.find(pid);
  if (found == living_nvml->process_names.end()) return 6;  // NVML_ERROR_NOT_FOUND
  write(found->second, name, bytes);
  return NVML_SUCCESS;
}

NvmlStatus capability(NvmlDevice, int* major, int* minor) {
  *minor = 0;
  return give("nvmlDeviceGetCudaComputeCapability", major, 9);
}

NvmlStatus next_event(NvmlEventSet, NvmlEvent* event, unsigned) {
  if (living_nvml->xids.empty()) return NVML_ERROR_TIMEOUT;
  const auto [gpu, number] = living_nvml->xids.front();
  living_nvml->xids.erase(living_nvml->xids.begin());
  *event = {reinterpret_cast<NvmlDevice>(&living_nvml->gpus[static_cast<std::size_t>(gpu)]),
            nvmlEventTypeXidCriticalError, static_cast<unsigned long long>(number), 0, 0};
  return NVML_SUCCESS;
}

/// Clocks, energy, link, errors: what is read over and over.
void add_readings(NvmlApi& api) {
  api.nvmlDeviceGetHandleByPciBusId_v2 = handle_by_bus_id;
  api.nvmlDeviceGetIndex = [](NvmlDevice device, unsigned* index) {
    return give("nvmlDeviceGetIndex", index,
                static_cast<unsigned>(&gpu_of(device) - living_nvml->gpus.data()));
  };
  api.nvmlDeviceGetUUID = [](NvmlDevice device, char* uuid, unsigned bytes) {
    return give_text("nvmlDeviceGetUUID", gpu_of(device).uuid, uuid, bytes);
  };
  api.nvmlDeviceGetTotalEnergyConsumption = [](NvmlDevice device, unsigned long long* millijoules) {
    return give("nvmlDeviceGetTotalEnergyConsumption", millijoules, gpu_of(device).millijoules);
  };
  api.nvmlDeviceGetClockInfo = [](NvmlDevice device, int clock, unsigned* mhz) {
    return give("nvmlDeviceGetClockInfo", mhz, clock == NVML_CLOCK_SM ? gpu_of(device).sm_mhz : 2619U);
  };
  api.nvmlDeviceGetMaxClockInfo = [](NvmlDevice, int clock, unsigned* mhz) {
    return give("nvmlDeviceGetMaxClockInfo", mhz, clock == NVML_CLOCK_SM ? 1980U : 2619U);
  };
  api.nvmlDeviceGetCurrentClocksEventReasons = [](NvmlDevice device, unsigned long long* bits) {
    return give("nvmlDeviceGetCurrentClocksEventReasons", bits, gpu_of(device).reasons);
  };
  api.nvmlDeviceGetCurrPcieLinkGeneration = [](NvmlDevice device, unsigned* generation) {
    return give("nvmlDeviceGetCurrPcieLinkGeneration", generation, gpu_of(device).generation);
  };
  api.nvmlDeviceGetCurrPcieLinkWidth = [](NvmlDevice device, unsigned* width) {
    return give("nvmlDeviceGetCurrPcieLinkWidth", width, gpu_of(device).width);
  };
  api.nvmlDeviceGetMaxPcieLinkGeneration = [](NvmlDevice, unsigned* generation) {
    return give("nvmlDeviceGetMaxPcieLinkGeneration", generation, 5U);
  };
  api.nvmlDeviceGetMaxPcieLinkWidth = [](NvmlDevice, unsigned* width) {
    return give("nvmlDeviceGetMaxPcieLinkWidth", width, 16U);
  };
  api.nvmlEventSetCreate = [](NvmlEventSet* set) {
    return give("nvmlEventSetCreate", set, reinterpret_cast<NvmlEventSet>(living_nvml));
  };
  api.nvmlEventSetFree = [](NvmlEventSet) { return living_nvml->called("nvmlEventSetFree"); };
  api.nvmlDeviceRegisterEvents = [](NvmlDevice, unsigned long long types, NvmlEventSet) {
    return types == nvmlEventTypeXidCriticalError ? living_nvml->called("nvmlDeviceRegisterEvents")
                                                  : NVML_ERROR_INVALID_ARGUMENT;
  };
  api.nvmlEventSetWait_v2 = next_event;
  api.nvmlDeviceGetTotalEccErrors = [](NvmlDevice device, int, int, unsigned long long* count) {
    return give("nvmlDeviceGetTotalEccErrors", count, gpu_of(device).ecc_errors);
  };
  api.nvmlDeviceGetRemappedRows = [](NvmlDevice device, unsigned* corrected, unsigned* uncorrected,
                                     unsigned* is_pending, unsigned* has_failed) {
    *corrected = *uncorrected = *is_pending = 0;
    return give("nvmlDeviceGetRemappedRows", has_failed, gpu_of(device).has_failed_rows ? 1U : 0U);
  };
}

const char* error_string(NvmlStatus status) {
  return status == NVML_ERROR_DRIVER_NOT_LOADED ? "Driver Not Loaded"
         : status == 15                         ? "GPU is lost"
                                                : "Unknown Error";
}

}  // namespace

NvmlStatus FakeNvml::called(const char* name) {
  calls.emplace_back(name);
  return failing_call > 0 && calls.size() == static_cast<std::size_t>(failing_call) ? failing_status
                                                                                    : NVML_SUCCESS;
}

FakeNvml::FakeNvml(std::vector<FakeGpu> all) : gpus(std::move(all)) {
  base::expects(living_nvml == nullptr, "one fake NVML lives at a time");
  living_nvml = this;
}

FakeNvml::~FakeNvml() { living_nvml = nullptr; }

NvmlApi FakeNvml::api() const {
  NvmlApi api;
  api.nvmlInit_v2 = [] {
    const auto status = living_nvml->called("nvmlInit");
    living_nvml->started += status == NVML_SUCCESS ? 1 : 0;
    return status;
  };
  api.nvmlShutdown = [] {
    ++living_nvml->ended;
    return living_nvml->called("nvmlShutdown");
  };
  api.nvmlErrorString = error_string;
  api.nvmlSystemGetDriverVersion = [](char* version, unsigned bytes) {
    return give_text("nvmlSystemGetDriverVersion", "580.65.06", version, bytes);
  };
  api.nvmlSystemGetCudaDriverVersion_v2 = [](int* version) {
    return give("nvmlSystemGetCudaDriverVersion", version, 13000);
  };
  api.nvmlSystemGetProcessName = process_name;
  api.nvmlDeviceGetCount_v2 = [](unsigned* count) {
    return give("nvmlDeviceGetCount", count, static_cast<unsigned>(living_nvml->gpus.size()));
  };
  api.nvmlDeviceGetHandleByIndex_v2 = handle;
  api.nvmlDeviceGetName = [](NvmlDevice device, char* name, unsigned bytes) {
    return give_text("nvmlDeviceGetName", gpu_of(device).name, name, bytes);
  };
  api.nvmlDeviceGetPciInfo_v3 = pci_info;
  api.nvmlDeviceGetMemoryInfo = [](NvmlDevice, NvmlMemory* memory) {
    return give("nvmlDeviceGetMemoryInfo", memory, {85'899'345'920ULL, 84'699'345'920ULL, 1'200'000'000ULL});
  };
  api.nvmlDeviceGetCudaComputeCapability = capability;
  api.nvmlDeviceGetUtilizationRates = [](NvmlDevice device, NvmlUtilization* busy) {
    return give("nvmlDeviceGetUtilizationRates", busy, {gpu_of(device).utilisation, 1U});
  };
  api.nvmlDeviceGetPowerUsage = [](NvmlDevice device, unsigned* milliwatts) {
    return give("nvmlDeviceGetPowerUsage", milliwatts, gpu_of(device).milliwatts);
  };
  add_readings(api);
  api.nvmlDeviceGetEnforcedPowerLimit = [](NvmlDevice, unsigned* milliwatts) {
    return give("nvmlDeviceGetEnforcedPowerLimit", milliwatts, 700'000U);
  };
  api.nvmlDeviceGetTemperature = [](NvmlDevice device, int, unsigned* celsius) {
    return give("nvmlDeviceGetTemperature", celsius, gpu_of(device).celsius);
  };
  api.nvmlDeviceGetFanSpeed = [](NvmlDevice, unsigned* percent) {
    return give("nvmlDeviceGetFanSpeed", percent, 30U);
  };
  api.nvmlDeviceGetPerformanceState = [](NvmlDevice, int* state) {
    return give("nvmlDeviceGetPerformanceState", state, 2);
  };
  api.nvmlDeviceGetEccMode = [](NvmlDevice, int* current, int* pending) {
    *pending = 0;
    return give("nvmlDeviceGetEccMode", current, 1);
  };
  api.nvmlDeviceGetComputeMode = [](NvmlDevice, int* mode) {
    return give("nvmlDeviceGetComputeMode", mode, 3);
  };
  api.nvmlDeviceGetMigMode = [](NvmlDevice, unsigned* current, unsigned* pending) {
    *pending = 1;
    return give("nvmlDeviceGetMigMode", current, 0U);
  };
  api.nvmlDeviceGetDisplayActive = [](NvmlDevice, int* active) {
    return give("nvmlDeviceGetDisplayActive", active, 0);
  };
  api.nvmlDeviceGetNvLinkState = link_state;
  api.nvmlDeviceGetNvLinkRemoteDeviceType = link_type;
  api.nvmlDeviceGetNvLinkRemotePciInfo_v2 = link_pci;
  api.nvmlDeviceGetTopologyCommonAncestor = [](NvmlDevice, NvmlDevice, int* level) {
    return give("nvmlDeviceGetTopologyCommonAncestor", level, NVML_TOPOLOGY_HOSTBRIDGE);
  };
  api.nvmlDeviceGetComputeRunningProcesses_v3 = processes;
  return api;
}

}  // namespace paceline::engine::cuda::test

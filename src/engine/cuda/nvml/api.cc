#include "engine/cuda/nvml/api.h"

#include <algorithm>

#include "base/error.h"

namespace paceline::engine::cuda {

std::optional<std::vector<base::GpuProcessReading>> processes_on(const NvmlApi& api, NvmlDevice device,
                                                                 NvmlAsker& ask) {
  constexpr const char* kCall = "nvmlDeviceGetComputeRunningProcesses";
  std::vector<NvmlProcess> found(64);
  auto count = static_cast<unsigned>(found.size());
  auto status = api.ask(api.nvmlDeviceGetComputeRunningProcesses_v3, device, &count, found.data());
  if (status == NVML_ERROR_INSUFFICIENT_SIZE) {  // `count` is the present number, and more may start
    found.resize(count + 64);
    count = static_cast<unsigned>(found.size());
    status = api.ask(api.nvmlDeviceGetComputeRunningProcesses_v3, device, &count, found.data());
  }
  if (!ask.answered(kCall, status)) return std::nullopt;
  std::vector<base::GpuProcessReading> processes;
  for (unsigned i = 0; i < std::min<std::size_t>(count, found.size()); ++i) {
    base::GpuProcessReading process{.pid = static_cast<int>(found[i].pid)};
    if (found[i].used_memory != ~0ULL) process.memory_bytes = static_cast<std::int64_t>(found[i].used_memory);
    std::array<char, 256> name{};
    // NVML does not give names of processes in other containers; this is no failure either.
    if (api.ask(api.nvmlSystemGetProcessName, found[i].pid, name.data(), 255U) == NVML_SUCCESS) {
      process.name = name.data();
      process.name = process.name.substr(process.name.find_last_of('/') + 1);
    }
    processes.push_back(process);
  }
  return processes;
}

namespace {

constexpr base::LibraryWanted kNvml{.kind = base::ErrorKind::device,
                                    .asked = "GPUs",
                                    .file = "libnvidia-ml.so.1",
                                    .product = "NVIDIA's driver",
                                    .install =
                                        "apt-get install nvidia-driver (Debian), and start containers "
                                        "with GPUs (docker run --gpus all)"};

}  // namespace

NvmlApi load_nvml(const base::EnvironmentLookup& environment) {
  const auto library = base::find_library(
      kNvml, base::library_folders(environment), [](const base::SharedLibrary& found) -> std::string {
        return found.symbol("nvmlInit_v2") == nullptr ? "it has no nvmlInit_v2" : "";
      });
  NvmlApi api;
#define PACELINE_FIND(name) library.find(#name, api.name)  // written once: the names cannot differ
  PACELINE_FIND(nvmlInit_v2);
  PACELINE_FIND(nvmlShutdown);
  PACELINE_FIND(nvmlErrorString);
  PACELINE_FIND(nvmlSystemGetDriverVersion);
  PACELINE_FIND(nvmlSystemGetCudaDriverVersion_v2);
  PACELINE_FIND(nvmlSystemGetProcessName);
  PACELINE_FIND(nvmlDeviceGetCount_v2);
  PACELINE_FIND(nvmlDeviceGetHandleByIndex_v2);
  PACELINE_FIND(nvmlDeviceGetHandleByPciBusId_v2);
  PACELINE_FIND(nvmlDeviceGetIndex);
  PACELINE_FIND(nvmlDeviceGetName);
  PACELINE_FIND(nvmlDeviceGetPciInfo_v3);
  PACELINE_FIND(nvmlDeviceGetMemoryInfo);
  PACELINE_FIND(nvmlDeviceGetCudaComputeCapability);
  PACELINE_FIND(nvmlDeviceGetUtilizationRates);
  PACELINE_FIND(nvmlDeviceGetPowerUsage);
  PACELINE_FIND(nvmlDeviceGetEnforcedPowerLimit);
  PACELINE_FIND(nvmlDeviceGetTotalEnergyConsumption);
  PACELINE_FIND(nvmlDeviceGetClockInfo);
  PACELINE_FIND(nvmlDeviceGetMaxClockInfo);
  PACELINE_FIND(nvmlDeviceGetCurrentClocksEventReasons);
  PACELINE_FIND(nvmlDeviceGetCurrentClocksThrottleReasons);
  PACELINE_FIND(nvmlDeviceGetCurrPcieLinkGeneration);
  PACELINE_FIND(nvmlDeviceGetCurrPcieLinkWidth);
  PACELINE_FIND(nvmlDeviceGetMaxPcieLinkGeneration);
  PACELINE_FIND(nvmlDeviceGetMaxPcieLinkWidth);
  PACELINE_FIND(nvmlDeviceGetUUID);
  PACELINE_FIND(nvmlDeviceGetTotalEccErrors);
  PACELINE_FIND(nvmlDeviceGetRemappedRows);
  PACELINE_FIND(nvmlEventSetCreate);
  PACELINE_FIND(nvmlEventSetFree);
  PACELINE_FIND(nvmlDeviceRegisterEvents);
  PACELINE_FIND(nvmlEventSetWait_v2);
  PACELINE_FIND(nvmlDeviceGetTemperature);
  PACELINE_FIND(nvmlDeviceGetFanSpeed);
  PACELINE_FIND(nvmlDeviceGetPerformanceState);
  PACELINE_FIND(nvmlDeviceGetEccMode);
  PACELINE_FIND(nvmlDeviceGetComputeMode);
  PACELINE_FIND(nvmlDeviceGetMigMode);
  PACELINE_FIND(nvmlDeviceGetDisplayActive);
  PACELINE_FIND(nvmlDeviceGetNvLinkState);
  PACELINE_FIND(nvmlDeviceGetNvLinkRemoteDeviceType);
  PACELINE_FIND(nvmlDeviceGetNvLinkRemotePciInfo_v2);
  PACELINE_FIND(nvmlDeviceGetTopologyCommonAncestor);
  PACELINE_FIND(nvmlDeviceGetComputeRunningProcesses_v3);
#undef PACELINE_FIND
  return api;
}

std::string describe_nvml_error(const NvmlApi& api, NvmlStatus status, const char* call) {
  const char* text = nullptr;
  if (api.nvmlErrorString != nullptr) text = api.nvmlErrorString(status);
  return fmt::format("{}: {}", call, text == nullptr ? fmt::format("error {}", status) : text);
}

void check(const NvmlApi& api, NvmlStatus status, const char* call, const std::string& where) {
  if (status != NVML_SUCCESS)
    base::fail(base::ErrorKind::device, "NVML{}: {}", where.empty() ? "" : " (" + where + ")",
               describe_nvml_error(api, status, call));
}

}  // namespace paceline::engine::cuda

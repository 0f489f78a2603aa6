#pragma once

/// NvmlApi is a table of functions of NVML, the driver's library for watching GPUs. Declared here since not
/// every CUDA toolkit includes NVML's header.
///
/// Members and constants have NVML's names and meanings (docs.nvidia.com/deploy/nvml-api). Version suffixes
/// and struct layouts are those that every driver since 2020 has.

#include <optional>
#include <string>
#include <vector>

#include "base/gpu_reading.h"
#include "base/shared_library.h"

namespace paceline::engine::cuda {

using NvmlStatus = int;  ///< nvmlReturn_t
struct NvmlDeviceObject;
using NvmlDevice = NvmlDeviceObject*;  ///< nvmlDevice_t

constexpr NvmlStatus NVML_SUCCESS = 0;
constexpr NvmlStatus NVML_ERROR_INVALID_ARGUMENT = 2;
constexpr NvmlStatus NVML_ERROR_NOT_SUPPORTED = 3;
constexpr NvmlStatus NVML_ERROR_INSUFFICIENT_SIZE = 7;
constexpr NvmlStatus NVML_ERROR_DRIVER_NOT_LOADED = 9;
constexpr NvmlStatus NVML_ERROR_TIMEOUT = 10;
constexpr NvmlStatus NVML_ERROR_FUNCTION_NOT_FOUND = 13;
constexpr NvmlStatus NVML_ERROR_UNKNOWN = 999;

constexpr int NVML_TEMPERATURE_GPU = 0;
constexpr unsigned NVML_NVLINK_MAX_LINKS = 18;
constexpr int NVML_NVLINK_DEVICE_TYPE_GPU = 0;
constexpr int NVML_NVLINK_DEVICE_TYPE_SWITCH = 2;
// Values of nvmlGpuTopologyLevel_t: what two GPUs share.
constexpr int NVML_TOPOLOGY_SINGLE = 10;    ///< one PCIe switch
constexpr int NVML_TOPOLOGY_MULTIPLE = 20;  ///< several of them
constexpr int NVML_TOPOLOGY_HOSTBRIDGE = 30;
constexpr int NVML_TOPOLOGY_NODE = 40;  ///< one memory node of the host

constexpr int NVML_CLOCK_SM = 1;
constexpr int NVML_CLOCK_MEM = 2;
constexpr int NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1;  ///< nvmlMemoryErrorType_t
constexpr int NVML_VOLATILE_ECC = 0;                   ///< nvmlEccCounterType_t: volatile
// Bits of nvmlClocksEventReasons. Bit 0x1 (idle) is left out: it does not limit the clocks.
constexpr unsigned long long nvmlClocksEventReasonApplicationsClocksSetting = 0x2,
                             nvmlClocksEventReasonSwPowerCap = 0x4, nvmlClocksThrottleReasonHwSlowdown = 0x8,
                             nvmlClocksEventReasonSyncBoost = 0x10,
                             nvmlClocksEventReasonSwThermalSlowdown = 0x20,
                             nvmlClocksThrottleReasonHwThermalSlowdown = 0x40,
                             nvmlClocksThrottleReasonHwPowerBrakeSlowdown = 0x80,
                             nvmlClocksEventReasonDisplayClockSetting = 0x100;

constexpr int NVML_PSTATE_15 = 15;  ///< performance states 0 (fastest) to 15; 32 is unknown

struct NvmlMemory {
  unsigned long long total, free, used;  ///< bytes
};
struct NvmlUtilization {
  unsigned gpu, memory;  ///< percent of the time in which any kernel ran, or any memory was accessed
};
struct NvmlPci {
  char bus_id_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
struct NvmlProcess {
  unsigned pid;
  unsigned long long used_memory;  ///< bytes; all bits set if the driver does not know
  unsigned instance, compute_instance;
};

struct NvmlEventSetObject;
using NvmlEventSet = NvmlEventSetObject*;  ///< nvmlEventSet_t
struct NvmlEvent {
  NvmlDevice device;
  unsigned long long type, data;  ///< for an Xid (a GPU error report): `data` is its number
  unsigned instance, compute_instance;
};
constexpr unsigned long long nvmlEventTypeXidCriticalError = 0x8;  ///< nvmlEventTypeXidCriticalError

/// NVML's functions. A member is null if the driver's library lacks the function; ask() then returns NVML's
/// error for that.
struct NvmlApi {
  NvmlStatus (*nvmlInit_v2)() = nullptr;
  NvmlStatus (*nvmlShutdown)() = nullptr;
  const char* (*nvmlErrorString)(NvmlStatus) = nullptr;
  NvmlStatus (*nvmlSystemGetDriverVersion)(char* version, unsigned bytes) = nullptr;
  NvmlStatus (*nvmlSystemGetCudaDriverVersion_v2)(int* version) = nullptr;
  NvmlStatus (*nvmlSystemGetProcessName)(unsigned pid, char* name, unsigned bytes) = nullptr;
  NvmlStatus (*nvmlDeviceGetCount_v2)(unsigned* count) = nullptr;
  NvmlStatus (*nvmlDeviceGetHandleByIndex_v2)(unsigned index, NvmlDevice* device) = nullptr;
  NvmlStatus (*nvmlDeviceGetHandleByPciBusId_v2)(const char* bus_id, NvmlDevice* device) = nullptr;
  NvmlStatus (*nvmlDeviceGetIndex)(NvmlDevice, unsigned* index) = nullptr;
  NvmlStatus (*nvmlDeviceGetName)(NvmlDevice, char* name, unsigned bytes) = nullptr;
  NvmlStatus (*nvmlDeviceGetPciInfo_v3)(NvmlDevice, NvmlPci*) = nullptr;
  NvmlStatus (*nvmlDeviceGetMemoryInfo)(NvmlDevice, NvmlMemory*) = nullptr;
  NvmlStatus (*nvmlDeviceGetCudaComputeCapability)(NvmlDevice, int* major, int* minor) = nullptr;
  NvmlStatus (*nvmlDeviceGetUtilizationRates)(NvmlDevice, NvmlUtilization*) = nullptr;
  NvmlStatus (*nvmlDeviceGetPowerUsage)(NvmlDevice, unsigned* milliwatts) = nullptr;
  NvmlStatus (*nvmlDeviceGetEnforcedPowerLimit)(NvmlDevice, unsigned* milliwatts) = nullptr;
  NvmlStatus (*nvmlDeviceGetTotalEnergyConsumption)(NvmlDevice, unsigned long long* millijoules) = nullptr;
  NvmlStatus (*nvmlDeviceGetClockInfo)(NvmlDevice, int clock, unsigned* mhz) = nullptr;
  NvmlStatus (*nvmlDeviceGetMaxClockInfo)(NvmlDevice, int clock, unsigned* mhz) = nullptr;
  NvmlStatus (*nvmlDeviceGetCurrentClocksEventReasons)(NvmlDevice, unsigned long long* bits) = nullptr;
  NvmlStatus (*nvmlDeviceGetCurrentClocksThrottleReasons)(NvmlDevice, unsigned long long* bits) = nullptr;
  NvmlStatus (*nvmlDeviceGetCurrPcieLinkGeneration)(NvmlDevice, unsigned*) = nullptr;
  NvmlStatus (*nvmlDeviceGetCurrPcieLinkWidth)(NvmlDevice, unsigned*) = nullptr;
  NvmlStatus (*nvmlDeviceGetMaxPcieLinkGeneration)(NvmlDevice, unsigned*) = nullptr;
  NvmlStatus (*nvmlDeviceGetMaxPcieLinkWidth)(NvmlDevice, unsigned*) = nullptr;
  NvmlStatus (*nvmlDeviceGetUUID)(NvmlDevice, char* uuid, unsigned bytes) = nullptr;
  NvmlStatus (*nvmlDeviceGetTotalEccErrors)(NvmlDevice, int type, int counter,
                                            unsigned long long* count) = nullptr;
  NvmlStatus (*nvmlDeviceGetRemappedRows)(NvmlDevice, unsigned* corrected, unsigned* uncorrected,
                                          unsigned* is_pending, unsigned* has_failed) = nullptr;
  NvmlStatus (*nvmlEventSetCreate)(NvmlEventSet*) = nullptr;
  NvmlStatus (*nvmlEventSetFree)(NvmlEventSet) = nullptr;
  NvmlStatus (*nvmlDeviceRegisterEvents)(NvmlDevice, unsigned long long types, NvmlEventSet) = nullptr;
  NvmlStatus (*nvmlEventSetWait_v2)(NvmlEventSet, NvmlEvent*, unsigned milliseconds) = nullptr;
  NvmlStatus (*nvmlDeviceGetTemperature)(NvmlDevice, int sensor, unsigned* celsius) = nullptr;
  NvmlStatus (*nvmlDeviceGetFanSpeed)(NvmlDevice, unsigned* percent) = nullptr;
  NvmlStatus (*nvmlDeviceGetPerformanceState)(NvmlDevice, int* state) = nullptr;
  NvmlStatus (*nvmlDeviceGetEccMode)(NvmlDevice, int* current, int* pending) = nullptr;
  NvmlStatus (*nvmlDeviceGetComputeMode)(NvmlDevice, int* mode) = nullptr;
  NvmlStatus (*nvmlDeviceGetMigMode)(NvmlDevice, unsigned* current, unsigned* pending) = nullptr;
  NvmlStatus (*nvmlDeviceGetDisplayActive)(NvmlDevice, int* active) = nullptr;
  NvmlStatus (*nvmlDeviceGetNvLinkState)(NvmlDevice, unsigned link, int* active) = nullptr;
  NvmlStatus (*nvmlDeviceGetNvLinkRemoteDeviceType)(NvmlDevice, unsigned link, int* type) = nullptr;
  NvmlStatus (*nvmlDeviceGetNvLinkRemotePciInfo_v2)(NvmlDevice, unsigned link, NvmlPci*) = nullptr;
  NvmlStatus (*nvmlDeviceGetTopologyCommonAncestor)(NvmlDevice, NvmlDevice, int* level) = nullptr;
  NvmlStatus (*nvmlDeviceGetComputeRunningProcesses_v3)(NvmlDevice, unsigned* count,
                                                        NvmlProcess* processes) = nullptr;

  /// Calls `function`; returns NVML_ERROR_FUNCTION_NOT_FOUND if it is null.
  template <typename... Parameters, typename... Arguments>
  NvmlStatus ask(NvmlStatus (*function)(Parameters...), Arguments... arguments) const {
    return function == nullptr ? NVML_ERROR_FUNCTION_NOT_FOUND : function(arguments...);
  }
};

/// Opens libnvidia-ml.so.1, which belongs to the driver.
///
/// Errors   Error(device), one sentence: the library is missing, or lacks a function that every version has
[[nodiscard]] NvmlApi load_nvml(const base::EnvironmentLookup& environment);

/// Why a call failed: "nvmlInit_v2: Driver Not Loaded".
[[nodiscard]] std::string describe_nvml_error(const NvmlApi& api, NvmlStatus status, const char* call);
/// Throws Error(device) unless `status` is success. `where`: "GPU 0", or empty.
void check(const NvmlApi& api, NvmlStatus status, const char* call, const std::string& where);

// Helpers to call NVML, the driver's library for watching GPUs: start and stop it, ask it for values that it
// may not have, list the processes of a GPU.

/// Starts NVML, and stops it in the destructor.
class NvmlSession {
 public:
  /// Errors   Error(device)
  explicit NvmlSession(const NvmlApi& api) : api_(api) {
    check(api, api.ask(api.nvmlInit_v2), "nvmlInit_v2", "");
  }
  ~NvmlSession() { (void)api_.ask(api_.nvmlShutdown); }
  NvmlSession(const NvmlSession&) = delete;
  NvmlSession& operator=(const NvmlSession&) = delete;

 private:
  const NvmlApi& api_;
};

/// Asks NVML for optional values, and collects the reasons for failures in `unknown`.
class NvmlAsker {
 public:
  NvmlAsker(const NvmlApi& api, std::vector<std::string>& unknown) : api_(api), unknown_(unknown) {}

  /// Calls `function`. Returns whether it gave a value. That a GPU or driver does not support the call is not
  /// recorded as a failure.
  template <typename... Parameters, typename... Arguments>
  bool operator()(const char* call, NvmlStatus (*function)(Parameters...), Arguments... arguments) {
    return answered(call, api_.ask(function, arguments...));
  }
  /// The same for the status of a call that was made already.
  bool answered(const char* call, NvmlStatus status) {
    if (status != NVML_SUCCESS && status != NVML_ERROR_NOT_SUPPORTED &&
        status != NVML_ERROR_FUNCTION_NOT_FOUND)
      unknown_.push_back(describe_nvml_error(api_, status, call));
    return status == NVML_SUCCESS;
  }

 private:
  const NvmlApi& api_;
  std::vector<std::string>& unknown_;
};

/// The processes that compute on `device`; empty if NVML does not list them.
[[nodiscard]] std::optional<std::vector<base::GpuProcessReading>> processes_on(const NvmlApi& api,
                                                                               NvmlDevice device,
                                                                               NvmlAsker& ask);

}  // namespace paceline::engine::cuda

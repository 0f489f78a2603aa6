#pragma once

/// NvmlApi is a table of functions of NVML, the driver's library for watching GPUs. Declared here since not
/// every CUDA toolkit includes NVML's header.
///
/// Members and constants have NVML's names and meanings (docs.nvidia.com/deploy/nvml-api). Version suffixes
/// and struct layouts are those that every driver since 2020 has.

#include <array>
#include <optional>
#include <string>
#include <string_view>
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
constexpr NvmlStatus NVML_ERROR_FUNCTION_NOT_FOUND = 13;

constexpr int NVML_TEMPERATURE_GPU = 0;
constexpr unsigned NVML_NVLINK_MAX_LINKS = 18;
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

/// A function of NVML that returns a status.
template <typename Function>
struct NvmlFunction {
  const char* name;             ///< of the symbol, with its version
  Function* pointer = nullptr;  ///< null: the driver's library lacks it
  NvmlFunction& operator=(Function* function) {
    pointer = function;
    return *this;
  }
  /// Calls it; returns NVML's error for that if the library lacks it.
  template <typename... Arguments>
  NvmlStatus operator()(Arguments... arguments) const {
    return pointer == nullptr ? NVML_ERROR_FUNCTION_NOT_FOUND : pointer(arguments...);
  }
};

/// The functions that are called: F(symbol, parameters).
#define PACELINE_NVML_FUNCTIONS(F)                                                                        \
  F(nvmlInit_v2, ())                                                                                      \
  F(nvmlShutdown, ())                                                                                     \
  F(nvmlSystemGetDriverVersion, (char* version, unsigned bytes))                                          \
  F(nvmlSystemGetCudaDriverVersion_v2, (int* version))                                                    \
  F(nvmlSystemGetProcessName, (unsigned pid, char* name, unsigned bytes))                                 \
  F(nvmlDeviceGetCount_v2, (unsigned* count))                                                             \
  F(nvmlDeviceGetHandleByIndex_v2, (unsigned index, NvmlDevice* device))                                  \
  F(nvmlDeviceGetHandleByPciBusId_v2, (const char* bus_id, NvmlDevice* device))                           \
  F(nvmlDeviceGetIndex, (NvmlDevice, unsigned* index))                                                    \
  F(nvmlDeviceGetName, (NvmlDevice, char* name, unsigned bytes))                                          \
  F(nvmlDeviceGetPciInfo_v3, (NvmlDevice, NvmlPci*))                                                      \
  F(nvmlDeviceGetMemoryInfo, (NvmlDevice, NvmlMemory*))                                                   \
  F(nvmlDeviceGetCudaComputeCapability, (NvmlDevice, int* major, int* minor))                             \
  F(nvmlDeviceGetUtilizationRates, (NvmlDevice, NvmlUtilization*))                                        \
  F(nvmlDeviceGetPowerUsage, (NvmlDevice, unsigned* milliwatts))                                          \
  F(nvmlDeviceGetEnforcedPowerLimit, (NvmlDevice, unsigned* milliwatts))                                  \
  F(nvmlDeviceGetTotalEnergyConsumption, (NvmlDevice, unsigned long long* millijoules))                   \
  F(nvmlDeviceGetClockInfo, (NvmlDevice, int clock, unsigned* mhz))                                       \
  F(nvmlDeviceGetMaxClockInfo, (NvmlDevice, int clock, unsigned* mhz))                                    \
  F(nvmlDeviceGetCurrentClocksEventReasons, (NvmlDevice, unsigned long long* bits))                       \
  F(nvmlDeviceGetCurrentClocksThrottleReasons, (NvmlDevice, unsigned long long* bits))                    \
  F(nvmlDeviceGetCurrPcieLinkGeneration, (NvmlDevice, unsigned*))                                         \
  F(nvmlDeviceGetCurrPcieLinkWidth, (NvmlDevice, unsigned*))                                              \
  F(nvmlDeviceGetMaxPcieLinkGeneration, (NvmlDevice, unsigned*))                                          \
  F(nvmlDeviceGetMaxPcieLinkWidth, (NvmlDevice, unsigned*))                                               \
  F(nvmlDeviceGetUUID, (NvmlDevice, char* uuid, unsigned bytes))                                          \
  F(nvmlDeviceGetTotalEccErrors, (NvmlDevice, int type, int counter, unsigned long long* count))          \
  F(nvmlDeviceGetRemappedRows,                                                                            \
    (NvmlDevice, unsigned* corrected, unsigned* uncorrected, unsigned* is_pending, unsigned* has_failed)) \
  F(nvmlEventSetCreate, (NvmlEventSet*))                                                                  \
  F(nvmlEventSetFree, (NvmlEventSet))                                                                     \
  F(nvmlDeviceRegisterEvents, (NvmlDevice, unsigned long long types, NvmlEventSet))                       \
  F(nvmlEventSetWait_v2, (NvmlEventSet, NvmlEvent*, unsigned milliseconds))                               \
  F(nvmlDeviceGetTemperature, (NvmlDevice, int sensor, unsigned* celsius))                                \
  F(nvmlDeviceGetFanSpeed, (NvmlDevice, unsigned* percent))                                               \
  F(nvmlDeviceGetPerformanceState, (NvmlDevice, int* state))                                              \
  F(nvmlDeviceGetEccMode, (NvmlDevice, int* current, int* pending))                                       \
  F(nvmlDeviceGetComputeMode, (NvmlDevice, int* mode))                                                    \
  F(nvmlDeviceGetMigMode, (NvmlDevice, unsigned* current, unsigned* pending))                             \
  F(nvmlDeviceGetDisplayActive, (NvmlDevice, int* active))                                                \
  F(nvmlDeviceGetNvLinkState, (NvmlDevice, unsigned link, int* active))                                   \
  F(nvmlDeviceGetNvLinkRemoteDeviceType, (NvmlDevice, unsigned link, int* type))                          \
  F(nvmlDeviceGetNvLinkRemotePciInfo_v2, (NvmlDevice, unsigned link, NvmlPci*))                           \
  F(nvmlDeviceGetTopologyCommonAncestor, (NvmlDevice, NvmlDevice, int* level))                            \
  F(nvmlDeviceGetComputeRunningProcesses_v3, (NvmlDevice, unsigned* count, NvmlProcess* processes))

/// NVML's functions, under their own names.
struct NvmlApi {
#define PACELINE_MEMBER(name, parameters) NvmlFunction<NvmlStatus parameters> name{#name};
  PACELINE_NVML_FUNCTIONS(PACELINE_MEMBER)
#undef PACELINE_MEMBER
  const char* (*nvmlErrorString)(NvmlStatus) = nullptr;
};

/// Opens libnvidia-ml.so.1, which belongs to the driver.
///
/// Errors   Error(device), one sentence: the library is missing, or lacks a function that every version has
[[nodiscard]] NvmlApi load_nvml(const base::EnvironmentLookup& environment);

/// Why a call of `function` failed: "nvmlInit: Driver Not Loaded". The symbol's version is left out.
[[nodiscard]] std::string describe_nvml_error(const NvmlApi& api, NvmlStatus status,
                                              std::string_view function);
/// Throws Error(device) unless `status` is success.
void check(const NvmlApi& api, NvmlStatus status, std::string_view function);

// Helpers to call NVML, the driver's library for watching GPUs: start and stop it, ask it for values that it
// may not have, list the processes of a GPU.

/// Starts NVML, and stops it in the destructor.
class NvmlSession {
 public:
  /// Errors   Error(device)
  explicit NvmlSession(const NvmlApi& api) : api_(api) {
    check(api, api.nvmlInit_v2(), api.nvmlInit_v2.name);
  }
  ~NvmlSession() { (void)api_.nvmlShutdown(); }
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
  template <typename Function, typename... Arguments>
  bool operator()(const NvmlFunction<Function>& function, Arguments... arguments) {
    return answered(function.name, function(arguments...));
  }
  /// The same for the status of a call that was made already.
  bool answered(std::string_view function, NvmlStatus status) {
    if (status != NVML_SUCCESS && status != NVML_ERROR_NOT_SUPPORTED &&
        status != NVML_ERROR_FUNCTION_NOT_FOUND)
      unknown_.push_back(describe_nvml_error(api_, status, function));
    return status == NVML_SUCCESS;
  }
  /// The number that `function` gives; empty if it gives none.
  template <typename Number, typename Function, typename... Arguments>
  std::optional<Number> number(const NvmlFunction<Function>& function, Arguments... arguments) {
    unsigned value = 0;
    if (!(*this)(function, arguments..., &value)) return std::nullopt;
    return static_cast<Number>(value);
  }
  /// A number of thousandths, as one of units.
  template <typename Function, typename... Arguments>
  std::optional<double> thousandths(const NvmlFunction<Function>& function, Arguments... arguments) {
    const auto value = number<double>(function, arguments...);
    return value ? std::optional(*value * 1e-3) : std::nullopt;
  }
  /// The text that `function` gives; empty if it gives none.
  template <typename Function, typename... Arguments>
  std::string text(const NvmlFunction<Function>& function, Arguments... arguments) {
    std::array<char, 128> to{};
    return (*this)(function, arguments..., to.data(), static_cast<unsigned>(to.size())) ? to.data() : "";
  }
  template <typename Function>
  std::optional<base::PcieLink> link(const NvmlFunction<Function>& generation,
                                     const NvmlFunction<Function>& width, NvmlDevice device) {
    const auto of_generation = number<int>(generation, device), of_width = number<int>(width, device);
    if (!of_generation || !of_width) return std::nullopt;
    return base::PcieLink{.generation = *of_generation, .width = *of_width};
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

#pragma once

/// Helpers to call NVML, the driver's library for watching GPUs: start and stop it, ask it for values that it
/// may not have, list the processes of a GPU.

#include <optional>
#include <string>
#include <vector>

#include "base/gpu_reading.h"
#include "engine/cuda/nvml/api.h"

namespace paceline::engine::cuda {

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
    if (status != kNvmlSuccess && status != kNvmlErrorNotSupported && status != kNvmlErrorFunctionNotFound)
      unknown_.push_back(describe_nvml_error(api_, status, call));
    return status == kNvmlSuccess;
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

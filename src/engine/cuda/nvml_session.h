#pragma once

/// NVML while it is used, and questions that it may leave open.

#include <optional>
#include <string>
#include <vector>

#include "base/gpu_reading.h"
#include "engine/cuda/api/nvml.h"

namespace paceline::engine::cuda {

/// NVML while it is started.
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

/// Asks for what may be refused, and keeps why.
class NvmlAsker {
 public:
  NvmlAsker(const NvmlApi& api, std::vector<std::string>& unknown) : api_(api), unknown_(unknown) {}

  /// Whether it was answered. That a GPU or a driver does not have a thing is no failure.
  template <typename... Parameters, typename... Arguments>
  bool operator()(const char* call, NvmlStatus (*function)(Parameters...), Arguments... arguments) {
    return answered(call, api_.ask(function, arguments...));
  }
  /// The same of a call that has been made.
  bool answered(const char* call, NvmlStatus status) {
    if (status != kNvmlSuccess && status != kNvmlErrorNotSupported && status != kNvmlErrorFunctionNotFound)
      unknown_.push_back(describe_nvml_error(api_, status, call));
    return status == kNvmlSuccess;
  }

 private:
  const NvmlApi& api_;
  std::vector<std::string>& unknown_;
};

/// The processes that compute on `device`; nothing where they are not told.
[[nodiscard]] std::optional<std::vector<base::GpuProcessReading>> processes_on(const NvmlApi& api,
                                                                               NvmlDevice device,
                                                                               NvmlAsker& ask);

}  // namespace paceline::engine::cuda

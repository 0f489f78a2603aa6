#pragma once

/// Reads GPUs (clocks, power, memory, errors) repeatedly during a run, through the driver's library NVML.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/gpu_reading.h"
#include "engine/cuda/nvml/api.h"

namespace paceline::engine::cuda {

/// A GPU that the run uses.
struct GpuOfRun {
  std::string bus_id;        ///< as CUDA writes it
  std::vector<int> workers;  ///< the workers of this process that compute on it
};

/// Opens `gpus` for reading. A GPU that NVML does not find stays in the list, with the reason. `api` is
/// copied.
///
/// Errors   Error(device), one sentence, if NVML does not start
[[nodiscard]] std::unique_ptr<base::GpuSource> open_gpu_source(const NvmlApi& api,
                                                               const std::vector<GpuOfRun>& gpus);

/// Converts NVML's reasons for lowered clocks to a mask of base::bit(base::GpuBrake).
[[nodiscard]] std::uint32_t brakes_of(unsigned long long reasons);

/// Why the clocks of `device` are lowered now, as such a mask; empty if NVML does not say.
[[nodiscard]] std::optional<std::uint32_t> brakes_on(const NvmlApi& api, NvmlDevice device, NvmlAsker& ask);

}  // namespace paceline::engine::cuda

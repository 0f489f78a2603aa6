#pragma once

/// GPUs that are read over and over while a run lasts, by NVML.

#include <memory>
#include <string>
#include <vector>

#include "base/gpu_reading.h"
#include "engine/cuda/api/nvml.h"

namespace paceline::engine::cuda {

/// A GPU of the run.
struct GpuOfRun {
  std::string bus_id;        ///< CUDA's
  std::vector<int> workers;  ///< of this process, that compute on it
};

/// `api` is copied. A GPU that NVML does not find stays in the list, with the reason.
///
/// Errors   Error(device), one sentence, when NVML does not start
[[nodiscard]] std::unique_ptr<base::GpuSource> open_gpu_source(const NvmlApi& api,
                                                               const std::vector<GpuOfRun>& gpus);

/// What NVML's bits say holds the clocks back, as base::bit() of each.
[[nodiscard]] std::uint32_t brakes_of(unsigned long long reasons);

/// The reasons for which clocks are held back now, from a driver of either name for them (before and since
/// 535).
[[nodiscard]] NvmlStatus ask_clock_reasons(const NvmlApi& api, NvmlDevice device, unsigned long long* bits);

}  // namespace paceline::engine::cuda

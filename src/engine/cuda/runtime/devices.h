#pragma once

/// Lists and opens the GPUs that this process may use. CUDA and cuDNN are loaded at run time.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/cuda/runtime/runtime.h"

namespace paceline::engine::cuda {

/// The number of visible GPUs, at least 1.
///
/// Errors   Error(device), one sentence that says whether module, driver or GPU is missing (load.h)
[[nodiscard]] int visible_device_count();

/// The PCI bus id of each visible GPU, cuda:0 first, as CUDA writes it. Creates no CUDA context.
///
/// Errors   like visible_device_count()
[[nodiscard]] std::vector<std::string> visible_bus_ids();

/// The compute capability of visible GPU `device`, 90 for 9.0; without a number, the least of all that are
/// visible. Creates no CUDA context.
///
/// Errors   like visible_device_count(); Error(device) if there is no such GPU, or one is too old
[[nodiscard]] int least_capability(std::optional<int> device);

/// Opens visible GPU `device` (the K of `--device cuda:K`).
///
/// Cost     the first call creates the CUDA context: a second or more, and about 500 MB of the GPU's memory
/// Errors   like visible_device_count(); Error(device) if there is no such GPU, the GPU is too old, cuDNN is
///          missing or too old, or a call fails
[[nodiscard]] std::unique_ptr<Runtime> open_device_runtime(int device);

/// "ready: 2 GPUs, CUDA 13.0 (driver for 13.0), cuDNN 9.19.0", or the error with which `--device cuda` would
/// end. Creates no CUDA context.
[[nodiscard]] std::string describe_readiness();

}  // namespace paceline::engine::cuda

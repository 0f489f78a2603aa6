#pragma once

/// The GPUs that this process may use, with the libraries that it finds at run time.

#include <memory>
#include <string>
#include <vector>

#include "engine/cuda/runtime.h"

namespace paceline::engine::cuda {

/// How many GPUs are visible, at least 1.
///
/// Errors   Error(device), one sentence: module, driver or GPU is missing (load.h)
[[nodiscard]] int visible_device_count();

/// The PCI bus id of each GPU that is visible, cuda:0 first, as CUDA writes it. Makes no context.
///
/// Errors   Error(device): as visible_device_count
[[nodiscard]] std::vector<std::string> visible_bus_ids();

/// The runtime of GPU `device` of those that are visible; --device cuda:K gives K. Takes a second or more the
/// first time, when CUDA makes the device's context, and some 500 MB of its memory.
///
/// Errors   Error(device), one sentence: as visible_device_count; no such GPU, one that is too old, cuDNN is
///          missing or too old, a failed call
[[nodiscard]] std::unique_ptr<Runtime> open_device_runtime(int device);

/// "ready: 2 GPUs, CUDA 13.0 (driver for 13.0), cuDNN 9.19.0", or the sentence that --device cuda would end
/// with. Makes no context.
[[nodiscard]] std::string describe_readiness();

}  // namespace paceline::engine::cuda

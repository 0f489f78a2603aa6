#pragma once

/// Makes an engine by the name of its device. make.cc has the table of engines, and is the only place that
/// names them.

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/gpu_reading.h"
#include "engine/engine.h"

namespace paceline::engine {

/// Compiles `graph` on `device`: "cpu" (fast), "reference" (plain loops, to compare with), "cuda" (GPU
/// options.worker_on_host modulo the visible ones), "cuda:K" (GPU K), "cuda-on-host" (the CUDA engine on the
/// processor).
///
/// Errors   Error(usage) for an unknown device; Error(device) when memory is refused
[[nodiscard]] std::unique_ptr<Engine> compile(const std::string& device, const graph::Graph& graph,
                                              const CompileOptions& options);

/// Chooses algorithms for CompileOptions::algorithms. Call it before plan() and compile(), so that both use
/// the same ones.
///
/// Cost     microseconds by default; with request.is_measured about a second for a new model or batch, then
///          microseconds
/// Errors   Error(usage) if the request insists on an algorithm that is not available here
[[nodiscard]] PreparedKernels prepare(const std::string& device, const graph::Graph& graph,
                                      const CompileOptions& options, const KernelRequest& request);

/// The memory that compile() would allocate. Allocates none of it.
[[nodiscard]] graph::MemoryPlan plan(const std::string& device, const graph::Graph& graph,
                                     const CompileOptions& options);

/// Whether engines for `device` support CompileOptions::stored_images.
[[nodiscard]] bool keeps_images(const std::string& device);

/// Whether engines for `device` keep gradients in the host's memory.
[[nodiscard]] bool computes_on_host(const std::string& device);

/// The device of the workers with these numbers on this host (CompileOptions::worker_on_host); if they use
/// several devices, the one with the least free memory. Empty for engines that compute on the host.
///
/// Errors   Error(device): one sentence that says what is missing (module, driver, GPU, library)
/// Cost     the first call creates a GPU's context: about a second
[[nodiscard]] std::optional<DeviceInfo> device_info(const std::string& device, std::span<const int> workers);

/// The K of "cuda:K"; none if the device has no number.
///
/// Errors   Error(usage) for an unknown device
[[nodiscard]] std::optional<int> device_index(const std::string& device);

/// The memory of the device of worker `worker_on_host`, without an engine. The host's memory if the device is
/// the host.
///
/// Errors   Error(device) like device_info()
/// Threads  one, like an engine
[[nodiscard]] std::shared_ptr<const base::Memory> open_memory(const std::string& device, int worker_on_host);

/// The PCI bus ids of the GPUs of workers 0 to `workers - 1` of this host, one for each worker. Empty for
/// engines that use no GPU, and if CUDA does not start. Creates no CUDA context.
[[nodiscard]] std::vector<std::string> gpu_bus_ids(const std::string& device, int workers);

/// A function that opens the GPUs of the workers with these numbers on this host for monitoring (clocks,
/// power, memory) during the run; empty for engines that use no GPU. It creates no CUDA context.
///
/// Errors   of the function: Error(device), one sentence that says what is missing
/// Threads  the function may be called on any thread
[[nodiscard]] std::function<std::unique_ptr<base::GpuSource>()> gpu_source(const std::string& device,
                                                                           std::vector<int> workers);

/// What `--precision auto` takes on `device`, and why. Nothing else decides it.
///
/// Cost     some milliseconds at the first call, which looks for bf16 units; nothing later
/// Errors   Error(usage) for an unknown device
[[nodiscard]] AutoPrecision auto_precision(const std::string& device);

}  // namespace paceline::engine

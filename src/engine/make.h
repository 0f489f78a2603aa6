#pragma once

/// The table of engines: the one place that names them.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/gpu_reading.h"
#include "base/memory.h"
#include "engine/engine.h"

namespace paceline::engine {

/// Compiles `graph` on `device`: "cpu" (fast), "reference" (plain loops, to compare with), "cuda" (GPU
/// options.worker_on_host modulo the visible ones), "cuda:K" (GPU K), "cuda-on-host" (the CUDA engine on the
/// processor).
///
/// Errors   Error(usage) for an unknown device; Error(device) when memory is refused
[[nodiscard]] std::unique_ptr<Engine> compile(const std::string& device, const graph::Graph& graph,
                                              const CompileOptions& options);

/// Chooses the algorithms that compile() and plan() are then given, in their options. To be called before
/// plan(), so that plan and engine agree.
///
/// Cost     next to nothing by default; request.is_measured: about a second for a new model or batch, next to
///          nothing the second time, on any day
/// Errors   Error(usage) where the request insists on an algorithm that cannot be had here
[[nodiscard]] PreparedKernels prepare(const std::string& device, const graph::Graph& graph,
                                      const CompileOptions& options, const KernelRequest& request);

/// What `compile` would need, without allocating it.
[[nodiscard]] graph::MemoryPlan plan(const std::string& device, const graph::Graph& graph,
                                     const CompileOptions& options);

/// Whether its engines take CompileOptions::stored_images.
[[nodiscard]] bool keeps_images(const std::string& device);

/// Whether its engines keep gradients in the host's memory.
[[nodiscard]] bool computes_on_host(const std::string& device);

/// The device that workers `first_worker` to `first_worker + workers - 1` of this host would compute on; of
/// several, the one with least free memory. Nothing for engines of the host.
///
/// Errors   Error(device) in one sentence: what is missing (module, driver, GPU, library)
/// Cost     a GPU's context, the first time: about a second
[[nodiscard]] std::optional<DeviceInfo> device_info(const std::string& device, int first_worker, int workers);

/// Memory of the device that worker `worker_on_host` computes on, without an engine; the host's for engines
/// of the host. For one thread, as an engine's.
///
/// Errors   Error(device) as device_info
[[nodiscard]] std::shared_ptr<const base::Memory> open_memory(const std::string& device, int worker_on_host);

/// The PCI bus ids of the GPUs that workers 0 to `workers - 1` of this host compute on, one a worker; empty
/// for engines that use none, and where CUDA does not start. Makes no context.
[[nodiscard]] std::vector<std::string> gpu_bus_ids(const std::string& device, int workers);

/// What opens the GPUs that these workers compute on, to read them while they do; empty for engines that use
/// none. It may be called on any thread, and makes no context.
///
/// Errors   of the function: Error(device) in one sentence: what is missing
[[nodiscard]] std::function<std::unique_ptr<base::GpuSource>()> gpu_source(const std::string& device,
                                                                           int first_worker, int workers);

/// Whether the device has units for bf16 products: what --precision auto asks.
[[nodiscard]] bool has_bf16_units(const std::string& device);

}  // namespace paceline::engine

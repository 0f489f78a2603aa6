#include "engine/make.h"

#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "engine/cpu/engine.h"
#include "engine/cuda/engine.h"
#include "engine/cuda/nvml/watch.h"
#include "engine/cuda/prepare.h"
#include "engine/cuda/runtime/device_runtime.h"
#include "engine/cuda/runtime/devices.h"
#include "engine/cuda/runtime/host_runtime.h"
#include "engine/cuda/runtime/memory.h"
#include "engine/ghost/engine.h"
#include "engine/reference/engine.h"

namespace paceline::engine {
namespace {

PreparedKernels nothing_to_prepare(const graph::Graph&, const CompileOptions&, const KernelRequest&) {
  return {};
}

AutoPrecision fp32_alone(std::optional<int>) { return {Precision::f32, "this engine computes in no other"}; }

namespace gpu {

int device_of(std::optional<int> device, int worker) {
  if (device) return *device;
  return cuda::device_of_worker(worker, cuda::visible_device_count());
}

std::unique_ptr<cuda::Runtime> open(const CompileOptions& options) {
  return cuda::open_device_runtime(device_of(options.device_index, options.worker_on_host));
}

std::unique_ptr<Engine> compile(const graph::Graph& graph, const CompileOptions& options) {
  return cuda::compile(graph, options, open(options));
}

graph::MemoryPlan plan(const graph::Graph& graph, const CompileOptions& options) {
  const auto runtime = open(options);
  return cuda::plan(graph, options, *runtime);
}

PreparedKernels prepare(const graph::Graph& graph, const CompileOptions& options,
                        const KernelRequest& request) {
  const auto runtime = open(options);
  return cuda::prepare(graph, options, request, *runtime);
}

AutoPrecision auto_precision(std::optional<int> device) {
  return cuda::auto_precision(cuda::least_capability(device));
}

std::optional<DeviceInfo> info(std::optional<int> device, std::span<const int> workers) {
  std::set<int> devices;
  for (const int worker : workers) devices.insert(device_of(device, worker));
  std::optional<DeviceInfo> fullest;
  for (const int one : devices) {
    const auto facts = cuda::open_device_runtime(one)->facts();
    if (fullest && fullest->free_memory_bytes <= facts.free_memory_bytes) continue;
    fullest = {.name = facts.name,
               .libraries = facts.libraries,
               .memory_bytes = facts.memory_bytes,
               .free_memory_bytes = facts.free_memory_bytes,
               .devices = device ? 1 : cuda::visible_device_count()};
  }
  return fullest;
}

std::unique_ptr<base::GpuSource> open_source(std::optional<int> device, std::span<const int> workers) {
  const auto bus_ids = cuda::visible_bus_ids();
  std::map<int, cuda::GpuOfRun> gpus;
  for (std::size_t worker = 0; worker < workers.size(); ++worker) {
    const int of_worker = device_of(device, workers[worker]);
    auto& gpu = gpus[of_worker];
    gpu.bus_id = bus_ids.at(static_cast<std::size_t>(of_worker));
    gpu.workers.push_back(static_cast<int>(worker));
  }
  std::vector<cuda::GpuOfRun> list;
  for (auto& [of_worker, gpu] : gpus) list.push_back(std::move(gpu));
  return cuda::open_gpu_source(cuda::load_nvml(base::process_environment()), list);
}

std::shared_ptr<const base::Memory> open_memory(std::optional<int> device, int worker) {
  return cuda::open_memory(cuda::open_device_runtime(device_of(device, worker)), "cuda");
}

}  // namespace gpu

/// The CUDA engine on the processor.
namespace gpu_on_host {

constexpr const char* kName = "cuda-on-host";

std::unique_ptr<Engine> compile(const graph::Graph& graph, const CompileOptions& options) {
  return cuda::compile(graph, options, std::make_unique<cuda::HostRuntime>(), {.name = kName});
}

graph::MemoryPlan plan(const graph::Graph& graph, const CompileOptions& options) {
  cuda::HostRuntime runtime;
  return cuda::plan(graph, options, runtime);
}

PreparedKernels prepare(const graph::Graph& graph, const CompileOptions& options,
                        const KernelRequest& request) {
  cuda::HostRuntime runtime;
  PreparedKernels prepared = cuda::prepare(graph, options, request, runtime);
  prepared.note = "no GPU: the CUDA engine on the processor; its times say nothing about any GPU" +
                  (prepared.note.empty() ? "" : "; " + prepared.note);
  return prepared;
}

AutoPrecision auto_precision(std::optional<int>) {
  return {Precision::f32, "its loops emulate bf16, which takes longer"};
}

std::optional<DeviceInfo> info(std::optional<int>, std::span<const int>) {
  return DeviceInfo{.name = "processor (no GPU)", .libraries = "CUDA engine on the processor"};
}

std::shared_ptr<const base::Memory> open_memory(std::optional<int>, int) {
  return cuda::open_memory(std::make_unique<cuda::HostRuntime>(), kName);
}

}  // namespace gpu_on_host

struct DeviceRow {
  const char* device;
  bool is_numbered;  ///< whether "device:K" is allowed
  bool keeps_images;
  std::unique_ptr<Engine> (*compile)(const graph::Graph&, const CompileOptions&);
  graph::MemoryPlan (*plan)(const graph::Graph&, const CompileOptions&);
  PreparedKernels (*prepare)(const graph::Graph&, const CompileOptions&, const KernelRequest&);
  AutoPrecision (*auto_precision)(std::optional<int> device);
  /// Null for engines with arrays in the host's memory.
  std::optional<DeviceInfo> (*info)(std::optional<int> device, std::span<const int> workers);
  std::shared_ptr<const base::Memory> (*open_memory)(std::optional<int> device, int worker) = nullptr;
  /// Null for engines that use no GPU.
  std::unique_ptr<base::GpuSource> (*open_source)(std::optional<int> device,
                                                  std::span<const int> workers) = nullptr;
};

/// Instead of a device's engine, if the compute is emulated.
constexpr DeviceRow kGhost{"ghost",    false,  false, ghost::compile, ghost::plan, nothing_to_prepare,
                           fp32_alone, nullptr};

/// All engines. A new one is a row here and a folder beside reference/.
constexpr DeviceRow kEngines[] = {
    {"cpu", false, false,
     [](const graph::Graph& graph, const CompileOptions& options) { return cpu::compile(graph, options); },
     [](const graph::Graph& graph, const CompileOptions& options) { return cpu::plan(graph, options); },
     cpu::prepare, [](std::optional<int>) { return cpu::auto_precision(); }, nullptr},
    {"reference", false, false, reference::compile, reference::plan, nothing_to_prepare, fp32_alone, nullptr},
    {"cuda", true, true, gpu::compile, gpu::plan, gpu::prepare, gpu::auto_precision, gpu::info,
     gpu::open_memory, gpu::open_source},
    {gpu_on_host::kName, false, true, gpu_on_host::compile, gpu_on_host::plan, gpu_on_host::prepare,
     gpu_on_host::auto_precision, gpu_on_host::info, gpu_on_host::open_memory},
};

struct Chosen {
  const DeviceRow& row;
  std::optional<int> index;  ///< the K of "cuda:K"
};

Chosen chosen(const std::string& device) {
  const auto colon = device.find(':');
  const std::string_view name = std::string_view(device).substr(0, colon);
  std::vector<std::string> known;
  for (const DeviceRow& row : kEngines) {
    known.emplace_back(row.device);
    if (name != row.device) continue;
    if (colon == std::string::npos) return {row, std::nullopt};
    const auto index = base::to_number<int>(std::string_view(device).substr(colon + 1));
    if (row.is_numbered && index && *index >= 0) return {row, index};
  }
  base::fail(base::ErrorKind::usage, "device '{}' is not known{}", device, base::suggestion(device, known));
}

const DeviceRow& row_of(const Chosen& device, const CompileOptions& options) {
  return options.emulated_compute.empty() ? device.row : kGhost;
}

CompileOptions with_index(CompileOptions options, const Chosen& device) {
  if (device.index) options.device_index = device.index;
  return options;
}

}  // namespace

std::unique_ptr<Engine> compile(const std::string& device, const graph::Graph& graph,
                                const CompileOptions& options) {
  const Chosen engine = chosen(device);
  return row_of(engine, options).compile(graph, with_index(options, engine));
}

graph::MemoryPlan plan(const std::string& device, const graph::Graph& graph, const CompileOptions& options) {
  const Chosen engine = chosen(device);
  return row_of(engine, options).plan(graph, with_index(options, engine));
}

PreparedKernels prepare(const std::string& device, const graph::Graph& graph, const CompileOptions& options,
                        const KernelRequest& request) {
  const Chosen engine = chosen(device);
  return row_of(engine, options).prepare(graph, with_index(options, engine), request);
}

bool keeps_images(const std::string& device) { return chosen(device).row.keeps_images; }

bool computes_on_host(const std::string& device) { return chosen(device).row.info == nullptr; }

std::optional<DeviceInfo> device_info(const std::string& device, std::span<const int> workers) {
  const Chosen engine = chosen(device);
  if (engine.row.info == nullptr) return std::nullopt;
  return engine.row.info(engine.index, workers);
}

std::optional<int> device_index(const std::string& device) { return chosen(device).index; }

std::shared_ptr<const base::Memory> open_memory(const std::string& device, int worker_on_host) {
  const Chosen engine = chosen(device);
  if (engine.row.open_memory == nullptr) return {std::shared_ptr<void>(), &base::host_memory()};
  return engine.row.open_memory(engine.index, worker_on_host);
}

std::function<std::unique_ptr<base::GpuSource>()> gpu_source(const std::string& device,
                                                             std::vector<int> workers) {
  const Chosen engine = chosen(device);
  if (engine.row.open_source == nullptr) return {};
  return [open = engine.row.open_source, index = engine.index, workers = std::move(workers)] {
    return open(index, workers);
  };
}

std::vector<std::string> gpu_bus_ids(const std::string& device, int workers) {
  const Chosen engine = chosen(device);
  if (engine.row.open_source == nullptr) return {};
  try {
    const auto visible = cuda::visible_bus_ids();
    std::vector<std::string> ids;
    for (int worker = 0; worker < workers; ++worker)
      ids.push_back(visible.at(static_cast<std::size_t>(gpu::device_of(engine.index, worker))));
    return ids;
  } catch (const std::exception&) {
    return {};  // compile() will report the reason
  }
}

AutoPrecision auto_precision(const std::string& device) {
  const Chosen engine = chosen(device);
  return engine.row.auto_precision(engine.index);
}

}  // namespace paceline::engine

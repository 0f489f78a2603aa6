#include "engine/cuda/nvml/session.h"

#include <algorithm>
#include <array>

namespace paceline::engine::cuda {

std::optional<std::vector<base::GpuProcessReading>> processes_on(const NvmlApi& api, NvmlDevice device,
                                                                 NvmlAsker& ask) {
  constexpr const char* kCall = "nvmlDeviceGetComputeRunningProcesses";
  std::vector<NvmlProcess> found(64);
  auto count = static_cast<unsigned>(found.size());
  auto status = api.ask(api.nvmlDeviceGetComputeRunningProcesses_v3, device, &count, found.data());
  if (status == kNvmlErrorInsufficientSize) {  // `count` is the present number, and more may start
    found.resize(count + 64);
    count = static_cast<unsigned>(found.size());
    status = api.ask(api.nvmlDeviceGetComputeRunningProcesses_v3, device, &count, found.data());
  }
  if (!ask.answered(kCall, status)) return std::nullopt;
  std::vector<base::GpuProcessReading> processes;
  for (unsigned i = 0; i < std::min<std::size_t>(count, found.size()); ++i) {
    base::GpuProcessReading process{.pid = static_cast<int>(found[i].pid)};
    if (found[i].used_memory != ~0ULL) process.memory_bytes = static_cast<std::int64_t>(found[i].used_memory);
    std::array<char, 256> name{};
    // NVML does not give names of processes in other containers; this is no failure either.
    if (api.ask(api.nvmlSystemGetProcessName, found[i].pid, name.data(), 255U) == kNvmlSuccess) {
      process.name = name.data();
      process.name = process.name.substr(process.name.find_last_of('/') + 1);
    }
    processes.push_back(process);
  }
  return processes;
}

}  // namespace paceline::engine::cuda

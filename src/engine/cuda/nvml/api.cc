#include "engine/cuda/nvml/api.h"

#include <algorithm>

#include "base/error.h"

namespace paceline::engine::cuda {

std::optional<std::vector<base::GpuProcessReading>> processes_on(const NvmlApi& api, NvmlDevice device,
                                                                 NvmlAsker& ask) {
  const auto& list = api.nvmlDeviceGetComputeRunningProcesses_v3;
  std::vector<NvmlProcess> found(64);
  auto count = static_cast<unsigned>(found.size());
  auto status = list(device, &count, found.data());
  if (status == NVML_ERROR_INSUFFICIENT_SIZE) {  // `count` is the present number, and more may start
    found.resize(count + 64);
    count = static_cast<unsigned>(found.size());
    status = list(device, &count, found.data());
  }
  if (!ask.answered(list.name, status)) return std::nullopt;
  std::vector<base::GpuProcessReading> processes;
  for (unsigned i = 0; i < std::min<std::size_t>(count, found.size()); ++i) {
    base::GpuProcessReading process{.pid = static_cast<int>(found[i].pid)};
    if (found[i].used_memory != ~0ULL) process.memory_bytes = static_cast<std::int64_t>(found[i].used_memory);
    std::array<char, 256> name{};
    // NVML does not give names of processes in other containers; this is no failure either.
    if (api.nvmlSystemGetProcessName(found[i].pid, name.data(), 255U) == NVML_SUCCESS) {
      process.name = name.data();
      process.name = process.name.substr(process.name.find_last_of('/') + 1);
    }
    processes.push_back(process);
  }
  return processes;
}

namespace {

constexpr base::LibraryWanted kNvml{.kind = base::ErrorKind::device,
                                    .asked = "GPUs",
                                    .file = "libnvidia-ml.so.1",
                                    .product = "NVIDIA's driver",
                                    .install =
                                        "apt-get install nvidia-driver (Debian), and start containers "
                                        "with GPUs (docker run --gpus all)"};

}  // namespace

NvmlApi load_nvml(const base::EnvironmentLookup& environment) {
  const auto library = base::find_library(
      kNvml, base::library_folders(environment), [](const base::SharedLibrary& found) -> std::string {
        return found.symbol("nvmlInit_v2") == nullptr ? "it has no nvmlInit_v2" : "";
      });
  NvmlApi api;
#define PACELINE_FIND(name, parameters) library.find(#name, api.name.pointer);
  PACELINE_NVML_FUNCTIONS(PACELINE_FIND)
#undef PACELINE_FIND
  library.find("nvmlErrorString", api.nvmlErrorString);
  return api;
}

std::string describe_nvml_error(const NvmlApi& api, NvmlStatus status, std::string_view function) {
  const char* text = nullptr;
  if (api.nvmlErrorString != nullptr) text = api.nvmlErrorString(status);
  return fmt::format("{}: {}", function.substr(0, function.find("_v")),
                     text == nullptr ? fmt::format("error {}", status) : text);
}

void check(const NvmlApi& api, NvmlStatus status, std::string_view function) {
  if (status != NVML_SUCCESS)
    base::fail(base::ErrorKind::device, "NVML: {}", describe_nvml_error(api, status, function));
}

}  // namespace paceline::engine::cuda

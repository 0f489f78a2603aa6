#include "engine/cuda/runtime/devices.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "engine/cuda/api/cudnn.h"
#include "engine/cuda/cudnn/convolution.h"
#include "engine/cuda/runtime/device_runtime.h"
#include "engine/cuda/runtime/load.h"

namespace paceline::engine::cuda {
namespace {

/// Loads cuDNN once; it stays open, since runtimes refer to the table.
const CudnnApi& open_cudnn_library(const CudaApi& cuda) {
  static const CudnnApi api = [&] {
    forbid_tf32();
    int driver = 0;
    if (cuda.cudaDriverGetVersion(&driver) != kCudaSuccess) driver = 0;
    return cudnn_api(find_cudnn(base::library_folders(base::process_environment()), driver));
  }();
  return api;
}

/// All memory of a GPU. 0 if it cannot be asked: opening its runtime says why.
std::int64_t memory_of(const CudaApi& cuda, int device) {
  std::size_t free = 0, total = 0;
  if (cuda.cudaSetDevice(device) != kCudaSuccess || cuda.cudaMemGetInfo(&free, &total) != kCudaSuccess)
    return 0;
  return static_cast<std::int64_t>(total);
}

/// The plans of all GPUs. They are never freed: at the program's end the driver may be gone before them.
cudnn::KeptPlans& kept_plans() {
  static auto* const plans = new cudnn::KeptPlans;
  return *plans;
}

}  // namespace

int visible_device_count() { return visible_devices(open_cuda(), base::process_environment()); }

std::vector<std::string> visible_bus_ids() {
  const CudaApi& cuda = open_cuda();
  std::vector<std::string> ids;
  const int count = visible_devices(cuda, base::process_environment());
  for (int device = 0; device < count; ++device) {
    std::array<char, 32> id{};
    if (const auto status = cuda.cudaDeviceGetPCIBusId(id.data(), static_cast<int>(id.size()), device);
        status != kCudaSuccess)
      base::fail(base::ErrorKind::device, "GPU {}: cudaDeviceGetPCIBusId: error {}", device, status);
    ids.emplace_back(id.data());
  }
  return ids;
}

int least_capability(std::optional<int> device) {
  const CudaApi& cuda = open_cuda();
  const auto environment = base::process_environment();
  if (device) return check_device(cuda, *device, environment);
  const int count = visible_devices(cuda, environment);
  int least = check_device(cuda, 0, environment);
  for (int other = 1; other < count; ++other) least = std::min(least, check_device(cuda, other, environment));
  return least;
}

std::unique_ptr<Runtime> open_device_runtime(int device) {
  const CudaApi& cuda = open_cuda();
  check_device(cuda, device, base::process_environment());
  return std::make_unique<DeviceRuntime>(
      cuda, device,
      cudnn::open_cudnn(open_cudnn_library(cuda), workspace_limit(memory_of(cuda, device)), &kept_plans(),
                        device));
}

std::string describe_readiness() {
  try {
    const CudaApi& cuda = open_cuda();
    const int count = visible_devices(cuda, base::process_environment());
    for (int device = 0; device < count; ++device) check_device(cuda, device, base::process_environment());
    int driver = 0;
    (void)cuda.cudaDriverGetVersion(&driver);
    return fmt::format("ready: {}, CUDA {} (driver for {}), cuDNN {}",
                       count == 1 ? "one GPU" : fmt::format("{} GPUs", count), cuda_version(cuda.built_with),
                       cuda_version(driver), cudnn_version(open_cudnn_library(cuda)));
  } catch (const base::Error& error) {
    return error.what();
  }
}

}  // namespace paceline::engine::cuda

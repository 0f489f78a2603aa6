#include "engine/cuda/runtime/load.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "engine/cuda/kernels/table.h"

namespace paceline::engine::cuda {
namespace {

constexpr int kOldestCapability = 75;  // the oldest that CUDA 13 and the module's kernels know
constexpr std::size_t kOldestCudnn = 91100;

/// Whether a driver for CUDA `driver` is too old for programs and libraries that were built with
/// `built_with`. Drivers run programs of every older CUDA, and of every newer one with their own major
/// version.
constexpr bool is_too_old(int driver, std::size_t built_with) {
  return built_with / 1000 > static_cast<std::size_t>(driver) / 1000;
}
/// The oldest driver's version for programs that were built with CUDA `built_with`.
constexpr int oldest_driver(int built_with) { return built_with >= 13000 ? 580 : 525; }

[[noreturn]] void fail_without_gpu(const base::EnvironmentLookup& environment) {
  const char* visible = environment("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr)
    base::fail(
        base::ErrorKind::device,
        "--device cuda: NVIDIA's driver is installed, but finds no GPU; paceline doctor lists the GPUs that "
        "the driver knows, and a container must be started with GPUs (docker run --gpus all)");
  if (std::string_view(visible).empty())
    base::fail(base::ErrorKind::device,
               "--device cuda: CUDA_VISIBLE_DEVICES is empty, which hides every GPU; unset it, or name GPUs: "
               "CUDA_VISIBLE_DEVICES=0");
  base::fail(
      base::ErrorKind::device,
      "--device cuda: CUDA_VISIBLE_DEVICES={} leaves no GPU visible; unset it, or name GPUs that paceline "
      "doctor lists: CUDA_VISIBLE_DEVICES=0",
      visible);
}

[[noreturn]] void fail_without_driver(const CudaApi& api) {
  int driver = 0;
  if (api.cudaDriverGetVersion(&driver) != kCudaSuccess) driver = 0;
  if (driver == 0)
    base::fail(
        base::ErrorKind::device,
        "--device cuda: NVIDIA's driver is not there (libcuda.so.1); install it (Debian: apt-get install "
        "nvidia-driver), and start containers with GPUs (docker run --gpus all)");
  const bool runs_cuda12 = driver >= 12000 && api.built_with >= 13000;
  base::fail(
      base::ErrorKind::device,
      "--device cuda: NVIDIA's driver supports CUDA up to {}, but this program was built with CUDA {}, which needs "
      "driver {} or later; install a newer driver{}",
      cuda_version(driver), cuda_version(api.built_with), oldest_driver(api.built_with),
      runs_cuda12 ? ", or build with CUDA's toolkit 12.8 or 12.9, whose programs this driver runs "
                    "(CUDA_HOME=/usr/local/cuda-12.9 ./x build --all-gpus)"
                  : "");
}

}  // namespace

std::string cuda_version(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

const CudaApi& open_cuda() { return open_cuda(base::module_path(kModule).parent_path()); }

const CudaApi& open_cuda(const std::filesystem::path& folder) {
  const auto entry = reinterpret_cast<const CudaApi* (*)()>(base::open_module(kModule, folder));
  const CudaApi& api = *entry();
  check_module(api, folder / kModule.file);
  return api;
}

void check_module(const CudaApi& api, const std::filesystem::path& module) {
  // table_bytes is the first member, so it can be read from the table of any build.
  if (api.table_bytes != sizeof(CudaApi) || api.kernel_count != kKernelCount ||
      !std::equal(kKernelBytes.begin(), kKernelBytes.end(), api.kernel_bytes))
    base::fail(base::ErrorKind::device,
               "--device cuda: {} belongs to another build of this program; rebuild both: cmake --preset "
               "release && ./x build",
               module.string());
}

int visible_devices(const CudaApi& api, const base::EnvironmentLookup& environment) {
  int count = 0;
  const CudaStatus status = api.cudaGetDeviceCount(&count);
  switch (status) {
    case kCudaSuccess:
      if (count <= 0) fail_without_gpu(environment);
      return count;
    case kCudaErrorNoDevice:
      fail_without_gpu(environment);
    case kCudaErrorInsufficientDriver:
      fail_without_driver(api);
    default:
      base::fail(base::ErrorKind::device, "--device cuda: {}",
                 describe_cuda_error(api, status, "cudaGetDeviceCount", ""));
  }
}

int check_device(const CudaApi& api, int device, const base::EnvironmentLookup& environment) {
  const int count = visible_devices(api, environment);
  const char* visible = environment("CUDA_VISIBLE_DEVICES");
  if (device < 0 || device >= count)
    base::fail(base::ErrorKind::device, "--device cuda:{}: this process sees {}{}; give {}", device,
               count == 1 ? "one GPU" : fmt::format("{} GPUs", count),
               visible == nullptr ? "" : fmt::format(" (CUDA_VISIBLE_DEVICES={})", visible),
               count == 1 ? "cuda:0" : fmt::format("cuda:0 to cuda:{}", count - 1));
  int major = 0, minor = 0;
  char name[256] = "";
  const auto require_success = [&](CudaStatus status, const char* call) {
    if (status != kCudaSuccess)
      base::fail(base::ErrorKind::device, "--device cuda: {}",
                 describe_cuda_error(api, status, call, fmt::format("on GPU {}", device)));
  };
  for (const auto& [value, attribute] : {std::pair{&major, kCudaDevAttrComputeCapabilityMajor},
                                         std::pair{&minor, kCudaDevAttrComputeCapabilityMinor}})
    require_success(api.cudaDeviceGetAttribute(value, attribute, device), "cudaDeviceGetAttribute");
  require_success(api.device_name(name, sizeof name, device), "cudaGetDeviceProperties");
  const int capability = 10 * major + minor;
  if (capability < kOldestCapability)
    base::fail(
        base::ErrorKind::device,
        "--device cuda:{}: {} has compute capability {}.{}, and the kernels need 7.5 (Turing) or later; use "
        "--device cpu",
        device, name, major, minor);
  return capability;
}

base::SharedLibrary find_cudnn(const std::vector<std::filesystem::path>& folders, int driver) {
  const bool is_cuda12 = driver > 0 && driver < 13000;
  const base::LibraryWanted wanted{
      .kind = base::ErrorKind::device,
      .asked = "--device cuda",
      .file = "libcudnn.so.9",
      .product = is_cuda12 ? "cuDNN 9.11 or later for CUDA 12" : "cuDNN 9.11 or later",
      .install = is_cuda12 ? "pip install nvidia-cudnn-cu12" : "pip install nvidia-cudnn-cu13"};
  return base::find_library(wanted, folders, [driver](const base::SharedLibrary& library) -> std::string {
    std::size_t (*version)() = nullptr;
    if (!library.find("cudnnGetVersion", version)) return "it has no cudnnGetVersion";
    const auto found = version();
    if (found < kOldestCudnn)
      return fmt::format("it is cuDNN {}.{}.{}", found / 10000, found / 100 % 100, found % 100);
    std::size_t (*built_with)() = nullptr;
    if (driver > 0 && library.find("cudnnGetCudartVersion", built_with) && is_too_old(driver, built_with()))
      return fmt::format("it is for CUDA {}, and NVIDIA's driver supports CUDA up to {}", built_with() / 1000,
                         cuda_version(driver));
    return "";
  });
}

}  // namespace paceline::engine::cuda

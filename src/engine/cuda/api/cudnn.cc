#include "engine/cuda/api/cudnn.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"

namespace paceline::engine::cuda {
namespace {

constexpr const char* kLibrary = "libcudnn.so.9";
constexpr const char* kInstall =
    "install cuDNN 9 for CUDA 13 (python3 -m pip install nvidia-cudnn-cu13, or NVIDIA's package cudnn9-cuda-13)";

std::string version_text(std::size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

/// A library and the names that are looked up in it.
struct Library {
  void* opened = nullptr;

  template <typename Function>
  void find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(::dlsym(opened, name));
    if (function == nullptr)
      base::fail(base::ErrorKind::device, "cuDNN: {} has no function {}; {}", kLibrary, name, kInstall);
  }
};

}  // namespace

CudnnApi load_cudnn() {
  const Library library{::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL)};
  if (library.opened == nullptr) {
    const char* const reason = ::dlerror();
    base::fail(base::ErrorKind::device, "cuDNN: {} does not open ({}); {}", kLibrary,
               reason == nullptr ? "no reason given" : reason, kInstall);
  }
  CudnnApi api;
  library.find(api.get_version, "cudnnGetVersion");
  library.find(api.get_error_string, "cudnnGetErrorString");
  library.find(api.get_last_error_string, "cudnnGetLastErrorString");
  library.find(api.create, "cudnnCreate");
  library.find(api.destroy, "cudnnDestroy");
  library.find(api.set_stream, "cudnnSetStream");
  library.find(api.create_descriptor, "cudnnBackendCreateDescriptor");
  library.find(api.destroy_descriptor, "cudnnBackendDestroyDescriptor");
  library.find(api.set_attribute, "cudnnBackendSetAttribute");
  library.find(api.get_attribute, "cudnnBackendGetAttribute");
  library.find(api.finalize, "cudnnBackendFinalize");
  library.find(api.execute, "cudnnBackendExecute");
  if (const std::size_t version = api.get_version(); version < kOldestCudnn)
    base::fail(base::ErrorKind::device, "cuDNN: at least version {} is wanted, but {} is {}; {}",
               version_text(kOldestCudnn), kLibrary, version_text(version), kInstall);
  return api;
}

std::string cudnn_version(const CudnnApi& api) { return version_text(api.get_version()); }

std::string error_text(const CudnnApi& api, cudnn::Status status) {
  const char* const name = api.get_error_string(status);
  std::string text = fmt::format("{} ({})", name == nullptr ? "unknown status" : name, status);
  std::array<char, 1024> details{};
  api.get_last_error_string(details.data(), details.size() - 1);
  const std::string_view first(details.data());
  std::string line(first.substr(0, std::min(first.find('\n'), first.size())));
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < 0x20; }, ' ');
  if (!line.empty()) text += ": " + line;
  return text;
}

void check(const CudnnApi& api, cudnn::Status status, std::string_view call, std::string_view problem) {
  if (status != cudnn::kSuccess)
    base::fail(base::ErrorKind::device, "cuDNN: {} failed for {}: {}", call, problem,
               error_text(api, status));
}

}  // namespace paceline::engine::cuda

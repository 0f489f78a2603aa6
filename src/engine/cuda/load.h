#pragma once

/// Finds CUDA when it is asked for: the program itself links none of it.
///
/// Own kernels and the CUDA runtime come with paceline_cuda.so, beside the program. cuDNN, NVML and later
/// NCCL are the user's: they are looked for where the loader finds them (LD_LIBRARY_PATH, its cache), in the
/// active Python environment (which PyTorch's packages of CUDA are in), in conda's, and in the toolkit's
/// folder.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/module.h"
#include "engine/cuda/api/cuda.h"

namespace paceline::engine::cuda {

/// The value of an environment variable, or nullptr: std::getenv but in tests.
using EnvironmentLookup = std::function<const char*(const char* name)>;
[[nodiscard]] EnvironmentLookup process_environment();

inline constexpr base::Module kModule{.kind = base::ErrorKind::device,
                                      .library = "--device cuda",
                                      .file = "paceline_cuda.so",
                                      .entry = "paceline_cuda_api",
                                      .built_with = "the CUDA toolkit 12.8 or later",
                                      .remedy = "build it anew: cmake --preset release && ./x build"};

/// The module's table. The module stays open until the process ends. Threads   any
///
/// Errors   Error(device), one sentence: the module is not there and how to build it, or it belongs to
///          another build of this program
[[nodiscard]] const CudaApi& open_cuda();
/// The same with the module in `folder`.
[[nodiscard]] const CudaApi& open_cuda(const std::filesystem::path& folder);
/// Refuses a table of another build. Errors   as open_cuda
void check_module(const CudaApi& api, const std::filesystem::path& module);

/// How many GPUs this process may use, at least 1.
///
/// Errors   Error(device), one sentence: no driver, a driver too old, no GPU, or CUDA_VISIBLE_DEVICES hides
///          them
[[nodiscard]] int visible_devices(const CudaApi& api, const EnvironmentLookup& environment);

/// A shared library that a user has installed.
struct LibraryWanted {
  const char* file;     ///< "libcudnn.so.9"
  const char* product;  ///< "cuDNN 9.11 or later", in sentences
  const char* install;  ///< "pip install nvidia-cudnn-cu13, or ..."
};

/// An open library. It stays open until the process ends.
struct SharedLibrary {
  void* handle = nullptr;
  std::string path;  ///< where it was found

  /// The address of `name`; nullptr where the library has none of that name.
  [[nodiscard]] void* symbol(const char* name) const;
  /// Sets `function` to `name`. False where the library has none of that name; it is nullptr then.
  template <typename Function>
  bool find(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(symbol(name));
    return function != nullptr;
  }
};

/// Says why a library that was found cannot be used ("it is cuDNN 9.1.0"); empty: it can.
using Refusal = std::function<std::string(const SharedLibrary&)>;

/// The folders that are looked in after the loader's own, in this order, those that exist.
[[nodiscard]] std::vector<std::filesystem::path> library_folders(const EnvironmentLookup& environment);

/// Opens the first `wanted` that is not refused.
///
/// Errors   Error(device), one sentence: what is missing, where it was looked for, which ones were refused
[[nodiscard]] SharedLibrary find_library(const LibraryWanted& wanted,
                                         const std::vector<std::filesystem::path>& folders,
                                         const Refusal& refusal);

/// cuDNN of at least 9.11. Errors   as find_library
[[nodiscard]] SharedLibrary find_cudnn(const EnvironmentLookup& environment);

}  // namespace paceline::engine::cuda

#pragma once

/// Finds NVIDIA's shared libraries, which the program does not link: cuDNN, NVML, NCCL.
///
/// They are looked for where people without root have them too: where the loader looks (LD_LIBRARY_PATH, its
/// cache), in the active Python environment, whose packages PyTorch brings, in conda's, in the CUDA toolkit's
/// folder.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"

namespace paceline::base {

/// The value of an environment variable, or nullptr: std::getenv but in tests.
using EnvironmentLookup = std::function<const char*(const char* name)>;
[[nodiscard]] EnvironmentLookup process_environment();

struct LibraryWanted {
  ErrorKind kind;       ///< of the errors below
  const char* asked;    ///< the first words of the sentences: "--device cuda"
  const char* file;     ///< "libcudnn.so.9"
  const char* product;  ///< "cuDNN 9.11 or later"
  const char* install;  ///< "pip install nvidia-cudnn-cu13"
};

/// An open library. It stays open until the process ends: its code may have threads and handlers of its own.
struct SharedLibrary {
  void* handle = nullptr;
  std::string path;  ///< where it was found

  /// The address of `name`; nullptr where the library has none of that name.
  [[nodiscard]] void* symbol(const char* name) const;
  /// Sets `function` to `name`. False, and nullptr, where the library has none of that name.
  template <typename Function>
  bool find(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(symbol(name));
    return function != nullptr;
  }
};

/// Says what a library is that cannot be used ("it is cuDNN 9.1.0"); empty: it can. It is asked of a copy
/// that is closed again: what the copy loads is not in the way of the next.
using Refusal = std::function<std::string(const SharedLibrary&)>;

/// The folders that are looked in after the loader's own, in this order: those of `environment` and the CUDA
/// toolkit's. All exist, none twice.
[[nodiscard]] std::vector<std::filesystem::path> library_folders(const EnvironmentLookup& environment);

/// Opens the first one that `refusal` does not refuse, of the loader's and of `folders`.
///
/// Errors   Error(wanted.kind), one sentence: what is missing, where it was looked for, what was refused
[[nodiscard]] SharedLibrary find_library(const LibraryWanted& wanted,
                                         const std::vector<std::filesystem::path>& folders,
                                         const Refusal& refusal);

}  // namespace paceline::base

#pragma once

/// Finds NVIDIA's shared libraries, which the program does not link: cuDNN, NVML, NCCL.
///
/// It searches where users without root can install them: the loader's paths (LD_LIBRARY_PATH, its cache),
/// the active Python environment (PyTorch brings packages with them), conda's environment, and the folder of
/// the CUDA toolkit.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"

namespace paceline::base {

/// Returns the value of an environment variable, or nullptr: std::getenv, except in tests.
using EnvironmentLookup = std::function<const char*(const char* name)>;
[[nodiscard]] EnvironmentLookup process_environment();

struct LibraryWanted {
  ErrorKind kind;       ///< of the errors below
  const char* asked;    ///< the first words of the errors: "--device cuda"
  const char* file;     ///< "libcudnn.so.9"
  const char* product;  ///< "cuDNN 9.11 or later"
  const char* install;  ///< "pip install nvidia-cudnn-cu13"
};

/// An open library. It stays open until the process ends, since its code may have started threads or
/// installed handlers.
struct SharedLibrary {
  void* handle = nullptr;
  std::string path;  ///< where it was found

  /// The address of `name`; null if the library has no such symbol.
  [[nodiscard]] void* symbol(const char* name) const;
  /// Sets `function` to the address of `name`. Returns false, and sets null, if the library has no such
  /// symbol.
  template <typename Function>
  bool find(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(symbol(name));
    return function != nullptr;
  }
};

/// Returns why a library cannot be used ("it is cuDNN 9.1.0"), or "" if it can. It is called with a handle
/// that is closed again, so a refused library does not stay loaded.
using Refusal = std::function<std::string(const SharedLibrary&)>;

/// The folders that are searched after the loader's own, in order: those from `environment` and the CUDA
/// toolkit's. All exist; none appears twice.
[[nodiscard]] std::vector<std::filesystem::path> library_folders(const EnvironmentLookup& environment);

/// Opens the first library that `refusal` accepts, from the loader's paths or from `folders`.
///
/// Errors   Error(wanted.kind), one sentence: what is missing, where it was looked for, what was refused
[[nodiscard]] SharedLibrary find_library(const LibraryWanted& wanted,
                                         const std::vector<std::filesystem::path>& folders,
                                         const Refusal& refusal);

}  // namespace paceline::base

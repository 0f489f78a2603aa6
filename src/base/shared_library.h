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

// Modules: shared objects beside the program that link libraries which the program itself does not link. A
// module is opened on demand. Where its library is missing, the module is missing or does not open, and
// the error says so.

struct Module {
  ErrorKind kind;          ///< of the errors below
  const char* library;     ///< "mpi", the first word of the errors
  const char* file;        ///< "paceline_mpi.so"
  const char* entry;       ///< the name of its one function
  const char* built_with;  ///< what must be installed to build it
  const char* remedy;      ///< what to do if the module does not open: "install openmpi-bin (Debian: ...)"
  bool global = false;     ///< whether libraries that are opened later may use its symbols
  /// Why the module may be missing and what builds it, if `built_with` is not the only reason.
  const char* absent = nullptr;
};

/// The path of the module: beside the program; if the program's folder is called "bin", also in
/// ../lib/paceline; for a build's programs in tests/ and bench/, in the directory above. If it is in none of
/// them: the path beside the program. Elsewhere, as in /tmp/x/.., other users may have put a file.
[[nodiscard]] std::filesystem::path module_path(const Module& module);

/// The folders in which modules are looked for, in order, by a program at that path.
[[nodiscard]] std::vector<std::filesystem::path> module_folders(const std::filesystem::path& program);

/// Errors   Error(module.kind) that says what to install, when the module does not exist
void require_module(const Module& module);

/// Opens the module in `folder` ("": at its module_path()) and returns its function. The module stays open
/// until the process ends.
///
/// Errors   Error(module.kind) that says what to install and how to build the module, when the module or its
///          library is missing
[[nodiscard]] void* open_module(const Module& module, const std::filesystem::path& folder = {});

// Finds the path and the identity of this program. In a bundle (docs/platforms.md) a loader that lies beside
// the program starts it: then /proc/self/exe is the loader, and the bundle's bin/paceline sets
// PACELINE_PROGRAM to the path of the program.

/// The file that starts this program again, on this host or on another one with the same paths: the program
/// itself, or bin/paceline of its bundle.
///
/// Errors   std::filesystem::filesystem_error where there is no /proc
[[nodiscard]] std::filesystem::path program_path();

/// The same for given values: `executable` is the target of /proc/self/exe, `variable` the value of
/// PACELINE_PROGRAM or "". `variable` counts only if `executable` is a loader: a program that has inherited
/// the variable from another one ignores it.
[[nodiscard]] std::filesystem::path program_path(const std::filesystem::path& executable,
                                                 const std::string& variable);

/// Identifies this build, wherever it was copied to: the linker's build id in hexadecimal digits, or, in a
/// program without one, its size and time.
[[nodiscard]] std::string build_id();

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

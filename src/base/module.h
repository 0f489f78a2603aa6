#pragma once

/// Modules: shared objects beside the program that link libraries which the program itself does not link. A
/// module is opened on demand. Where its library is missing, the module is missing or does not open, and
/// the error says so.

#include <filesystem>

#include "base/error.h"

namespace paceline::base {

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

/// The path of the module: in ../lib/paceline, beside the program, or in the directory above (as for the
/// programs of tests/ and bench/ in a build). If it is in none of them: the path beside the program.
[[nodiscard]] std::filesystem::path module_path(const Module& module);

/// Errors   Error(module.kind) that says what to install, when the module does not exist
void require_module(const Module& module);

/// Opens the module in `folder` and returns its function. The module stays open until the process ends.
///
/// Errors   Error(module.kind) that says what to install and how to build the module, when the module or its
///          library is missing
[[nodiscard]] void* open_module(const Module& module, const std::filesystem::path& folder);

}  // namespace paceline::base

#pragma once

/// Libraries that the program itself does not link: each has a module beside the program, which is opened
/// when it is asked for. Without the library the module is not there, or does not open, and the error then
/// says so.

#include <filesystem>

#include "base/error.h"

namespace paceline::base {

struct Module {
  ErrorKind kind;          ///< of the errors below
  const char* library;     ///< "mpi", the first word of the sentences
  const char* file;        ///< "paceline_mpi.so"
  const char* entry;       ///< its one function
  const char* built_with;  ///< what must be installed when the program is built
  const char* remedy;      ///< for a module that does not open: "install openmpi-bin (Debian: ...)"
  bool global = false;     ///< whether libraries that are opened later may use its symbols
};

/// Where the module is: in ../lib/paceline, beside the program, or above it, where the build leaves it for
/// the programs of tests/ and bench/. Beside the program where it is in none of them.
[[nodiscard]] std::filesystem::path module_path(const Module& module);

/// Errors   Error(module.kind) that says what to install when the module is not there
void require_module(const Module& module);

/// The module's function, in `folder`. The module stays open: its code runs until the process ends.
///
/// Errors   Error(module.kind) that says what to install and how to build the module when it is not there or
///          the library that it needs is not
[[nodiscard]] void* open_module(const Module& module, const std::filesystem::path& folder);

}  // namespace paceline::base

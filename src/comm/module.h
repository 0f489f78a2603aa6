#pragma once

/// Libraries of messages that the program itself does not link: each is in a module beside it, opened when it
/// is asked for. Without the library the module is not there, or does not open, and that is said then.

#include <filesystem>

namespace paceline::comm {

struct Module {
  const char* library;  ///< "mpi", in sentences
  const char* file;     ///< "paceline_mpi.so"
  const char* entry;    ///< its one function
  const char* built_with;
  const char* runs_with;  ///< what to install
};

/// Where the module is looked for: ../lib/paceline where it is there, else beside the program.
[[nodiscard]] std::filesystem::path module_path(const Module& module);

/// The module's function, in `folder`. The module stays open: its code runs until the process ends.
///
/// Errors   Error(comm) that says what to install and how to build the module when it is not there or the
///          library that it needs is not
[[nodiscard]] void* open_module(const Module& module, const std::filesystem::path& folder);

}  // namespace paceline::comm

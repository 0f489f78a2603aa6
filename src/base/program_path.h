#pragma once

/// Which program this is, and where it lies. In a bundle (docs/platforms.md) the program is started by the
/// loader that lies beside it: /proc/self/exe is that loader then, and the bundle's bin/paceline says in
/// PACELINE_PROGRAM what was started.

#include <filesystem>
#include <string>

namespace paceline::base {

/// What starts this program again, on this host or on another one that has it at the same place: the file
/// itself, or bin/paceline of its bundle.
///
/// Errors   std::filesystem::filesystem_error where there is no /proc
[[nodiscard]] std::filesystem::path program_path();

/// The same for given values: `executable` is what /proc/self/exe leads to, `variable` the value of
/// PACELINE_PROGRAM, "" where it is not set. The variable counts only where a loader was started: a program
/// that inherited it from another one is itself.
[[nodiscard]] std::filesystem::path program_path(const std::filesystem::path& executable,
                                                 const std::string& variable);

/// What tells this build from others, wherever it was copied to: the linker's build id in hexadecimal digits,
/// or, in a program without one, its size and time.
[[nodiscard]] std::string build_id();

}  // namespace paceline::base

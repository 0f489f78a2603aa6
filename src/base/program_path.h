#pragma once

/// Finds the path and the identity of this program. In a bundle (docs/platforms.md) a loader that lies beside
/// the program starts it: then /proc/self/exe is the loader, and the bundle's bin/paceline sets
/// PACELINE_PROGRAM to the path of the program.

#include <filesystem>
#include <string>

namespace paceline::base {

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

}  // namespace paceline::base

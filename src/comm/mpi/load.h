#pragma once

/// Finds MPI when it is asked for: the program itself links none of it.

#include <filesystem>
#include <memory>

#include "base/module.h"
#include "comm/wire.h"

namespace paceline::comm::mpi {

inline constexpr base::Module kModule{
    .kind = base::ErrorKind::comm,
    .library = "mpi",
    .file = "paceline_mpi.so",
    .entry = "paceline_open_mpi",
    .built_with = "libopenmpi-dev and openmpi-bin",
    .remedy = "install openmpi-bin (Debian: apt-get install openmpi-bin)",
    // Open MPI opens plug-ins of its own, which look for its symbols globally.
    .global = true};

/// Opens the module and starts MPI. Errors   as open_module
[[nodiscard]] std::unique_ptr<Wire> open_wire();
/// The same with the module in `folder`.
[[nodiscard]] std::unique_ptr<Wire> open_wire(const std::filesystem::path& folder);

}  // namespace paceline::comm::mpi

#pragma once

/// Opens MPI on demand; the program itself does not link it.

#include <filesystem>
#include <memory>

#include "base/shared_library.h"
#include "comm/launch.h"
#include "comm/wire.h"

// The interface between the module paceline_mpi.so and the program.

extern "C" {
/// Starts MPI in this process; at most once.
///
/// Errors   Error(comm)
paceline::comm::Wire* paceline_open_mpi();
}

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

/// The same source, built against MPICH, whose binary interface Intel MPI and Cray MPI share.
inline constexpr base::Module kMpichModule{
    .kind = base::ErrorKind::comm,
    .library = "mpich",
    .file = "paceline_mpich.so",
    .entry = "paceline_open_mpi",
    .built_with = "libmpich-dev",
    .remedy =
        "install it (Debian: apt-get install mpich) or load its module; or let the processes meet by TCP: set "
        "MASTER_ADDR to the host of the first and MASTER_PORT to a free port there",
    .global = true};

/// Opens the module, of `folder` as in open_module(), and starts MPI, on launch.interface if that is set.
///
/// Errors   as open_module
[[nodiscard]] std::unique_ptr<Wire> open_wire(const Launch& launch, const std::filesystem::path& folder = {});

}  // namespace paceline::comm::mpi

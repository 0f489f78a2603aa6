#pragma once

/// Finds MPI when it is asked for: the program itself links none of it.

#include <filesystem>
#include <memory>

#include "comm/wire.h"

namespace paceline::comm::mpi {

/// Where the module is looked for: ../lib/paceline where it is there, else beside the program.
[[nodiscard]] std::filesystem::path module_path();

/// Opens the module beside the program (or in ../lib/paceline) and starts MPI.
///
/// Errors   Error(comm) that says what to install and how to build the module when it is not there or the
///          MPI library that it needs is not
[[nodiscard]] std::unique_ptr<Wire> open_wire();
/// The same with the module in `folder`.
[[nodiscard]] std::unique_ptr<Wire> open_wire(const std::filesystem::path& folder);

}  // namespace paceline::comm::mpi

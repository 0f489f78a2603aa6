#pragma once

/// The interface between the module paceline_mpi.so and the program.

#include "comm/wire.h"

extern "C" {
/// Starts MPI in this process; at most once.
///
/// Errors   Error(comm)
paceline::comm::Wire* paceline_open_mpi();
}

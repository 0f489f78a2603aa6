#pragma once

/// The communicator of worker threads in one process: shared memory, no copies. If the process is one of
/// several, InterProcessComm does each collective's second half, and ranks count over all processes.

#include <memory>

#include "comm/communicator.h"
#include "comm/local/group.h"

namespace paceline::comm::local {

/// The communicator of rank `rank` of `group`. The thread that first calls all_reduce starts its progress
/// thread, which inherits that thread's cores and so works next to its rank.
[[nodiscard]] std::unique_ptr<Communicator> join(std::shared_ptr<Group> group, int rank);

}  // namespace paceline::comm::local

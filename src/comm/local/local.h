#pragma once

/// The communicator of worker threads in one process: shared memory, no copies in between. Where the process
/// is one of several, each collective's second half goes through InterProcessComm, and the ranks are those of
/// all processes.

#include <memory>

#include "comm/communicator.h"
#include "comm/local/group.h"

namespace paceline::comm::local {

/// Rank `rank`'s end of `group`. Its progress thread is created at the first all_reduce, by the thread that
/// calls: so it inherits that thread's cores, and works beside the rank that it works for.
[[nodiscard]] std::unique_ptr<Communicator> join(std::shared_ptr<Group> group, int rank);

}  // namespace paceline::comm::local

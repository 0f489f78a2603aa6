#pragma once

/// The table of communicators: the one place that names them.

#include <chrono>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "comm/failure/stall_options.h"
#include "comm/launch.h"
#include "comm/process_group.h"

namespace paceline::comm {

struct LocalOptions {
  std::chrono::seconds deadline{60};  ///< a collective that takes longer is Error(comm)
  /// The other processes of the run, each with as many ranks as this one; nullptr: there are none. Outlives
  /// the communicators.
  InterProcessComm* across = nullptr;
  StallOptions stall_options = {};  ///< who hears of a worker that lets the others wait
};

/// `ranks` communicators that join the threads of this process (and with `across` those of all processes);
/// element r is for the process's rank r and may be used by one thread. They share state: keep all of them
/// alive until every rank is done.
[[nodiscard]] std::vector<std::unique_ptr<Communicator>> make_local(int ranks, LocalOptions options = {});

/// Joins the processes of `launch`: through gloo where they have to meet (launch.meeting_host), else through
/// MPI, that of the launcher's family. At most once in a process.
///
/// Errors   Error(comm): the library is not installed, and what to install; processes that do not come
[[nodiscard]] std::unique_ptr<Wire> open_wire(const Launch& launch);

}  // namespace paceline::comm

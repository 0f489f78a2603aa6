#pragma once

/// Makes communicators and the wire between processes. make.cc is the only place that names local, mpi and
/// gloo.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/failure/stall_detector.h"
#include "comm/launch.h"
#include "comm/process_group.h"

namespace paceline::comm {

struct LocalOptions {
  std::chrono::seconds deadline{60};  ///< a collective that takes longer is Error(comm)
  /// The other processes of the run, each with as many ranks as this one; nullptr: none. It must outlive the
  /// communicators.
  ProcessGroup* across = nullptr;
  StallOptions stall_options = {};  ///< how stalled workers are reported
};

/// `ranks` communicators for threads of this process (with `across`: joined with those of all processes).
/// Element r is for the process's rank r and may be used by one thread. They share state: keep all of them
/// alive until every rank is done.
[[nodiscard]] std::vector<std::unique_ptr<Communicator>> make_local(int ranks, LocalOptions options = {});

/// Joins the processes of `launch`: through gloo if they have to meet (launch.meeting_host), else through MPI
/// of the launcher's family. At most once in a process. `say(text)` hears, in this thread, for which process
/// of gloo's it has waited long; MPI says nothing.
///
/// Errors   Error(comm): the library is not installed, with what to install; processes that do not come
[[nodiscard]] std::unique_ptr<Wire> open_wire(const Launch& launch,
                                              const std::function<void(const std::string&)>& say);

}  // namespace paceline::comm

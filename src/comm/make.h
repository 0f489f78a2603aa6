#pragma once

/// The table of communicators: the one place that names them.

#include <chrono>
#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace paceline::comm {

struct LocalOptions {
  std::chrono::seconds deadline{60};  ///< a collective that takes longer is Error(comm)
};

/// `ranks` communicators that join the threads of this process; element r is for rank r and may be used by
/// one thread. They share state: keep all of them alive until every rank is done.
[[nodiscard]] std::vector<std::unique_ptr<Communicator>> make_local(int ranks, LocalOptions options = {});

}  // namespace paceline::comm

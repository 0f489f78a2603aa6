#include "comm/make.h"

#include "base/error.h"
#include "comm/gloo/load.h"
#include "comm/local/group.h"
#include "comm/mpi/load.h"

namespace paceline::comm {

std::vector<std::unique_ptr<Communicator>> make_local(int ranks, LocalOptions options) {
  if (ranks < 1)
    base::fail(base::ErrorKind::usage, "workers: {} were asked for; at least 1 is needed", ranks);
  auto group = std::make_shared<local::Group>(ranks, options.deadline, options.across,
                                              std::move(options.stall_options));
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int rank = 0; rank < ranks; ++rank) communicators.push_back(local::join(group, rank));
  return communicators;
}

std::unique_ptr<Wire> open_wire(const Launch& launch, const std::function<void(const std::string&)>& say) {
  return launch.meeting_host.empty() ? mpi::open_wire(launch) : gloo::open_wire(launch, say);
}

}  // namespace paceline::comm

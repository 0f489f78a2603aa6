#include "comm/failure/startup_probe.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/host_name.h"
#include "base/process_state.h"
#include "comm/line_socket.h"

namespace paceline::comm {
namespace {

/// An abstract socket name, which needs no file: its first byte is 0.
struct SocketAddress {
  sockaddr_un address{};
  socklen_t size = 0;
};

SocketAddress name_of(const Launch& launch, int local) {
  SocketAddress name;
  name.address.sun_family = AF_UNIX;
  auto text = fmt::format("paceline {} {}", local, launch.job);
  text.resize(std::min(text.size(), sizeof name.address.sun_path - 1));
  std::memcpy(name.address.sun_path + 1, text.data(), text.size());
  name.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return name;
}

int new_local_socket() { return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

enum class PeerState { absent, there, stopped, idle };

/// The state of a process, and its process id if known, else 0.
std::pair<PeerState, pid_t> look_for(const Launch& launch, int local) {
  const auto name = name_of(launch, local);
  const Socket socket(new_local_socket());
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name.address), name.size) != 0)
    return {errno == ECONNREFUSED ? PeerState::absent : PeerState::there,
            0};  // EAGAIN: too many have asked already
  ucred owner{};
  socklen_t size = sizeof owner;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &owner, &size) != 0) return {PeerState::there, 0};
  return {base::state_of_process(owner.pid) == 'T' ? PeerState::stopped : PeerState::there, owner.pid};
}

}  // namespace

StartupProbe::StartupProbe(const Launch& launch) : launch_(launch) {
  if (launch_.job.empty() || launch_.local < 0 || launch_.locals < 1) return;
  const auto name = name_of(launch_, launch_.local);
  socket_ = new_local_socket();
  if (::bind(socket_, reinterpret_cast<const sockaddr*>(&name.address), name.size) == 0 &&
      ::listen(socket_, SOMAXCONN) == 0)
    return;
  ::close(socket_);
  socket_ = -1;
}

StartupProbe::~StartupProbe() {
  if (socket_ >= 0) ::close(socket_);
}

StartupProbe::Glance StartupProbe::glance() const {
  Glance glance;
  for (int local = 0; socket_ >= 0 && local < launch_.locals; ++local) {
    const pid_t process = local == launch_.local ? ::getpid() : look_for(launch_, local).second;
    glance.push_back(process == 0 ? std::nullopt : base::ran_for_ns(process));
  }
  return glance;
}

std::vector<std::string> StartupProbe::absent(const Glance& before) const {
  const auto was_idle = [&](int local, pid_t process) {
    const auto at = static_cast<std::size_t>(local);
    return at < before.size() && before[at] && before[at] == base::ran_for_ns(process);
  };
  if (was_idle(launch_.local, ::getpid()))
    return {};  // its own first thread was idle too, so nothing can be concluded about others
  std::vector<std::string> sentences;
  for (int local = 0; socket_ >= 0 && local < launch_.locals; ++local) {
    if (local == launch_.local) continue;
    auto [seen, process] = look_for(launch_, local);
    if (seen == PeerState::there && was_idle(local, process)) seen = PeerState::idle;
    if (seen == PeerState::there) {
      if (local < launch_.local) return {};
      continue;
    }
    // Numbers on the host are numbers of the run only if all processes are on this host.
    const auto who = launch_.locals == launch_.processes
                         ? fmt::format("process {}", local)
                         : fmt::format("the process with local rank {}", local);
    sentences.push_back(seen == PeerState::absent
                            ? fmt::format("{} on host {} has not begun", who, base::host_name())
                            : fmt::format("{} on host {} (pid {}) {}", who, base::host_name(), process,
                                          seen == PeerState::stopped ? "is stopped" : "does nothing"));
  }
  return sentences;
}

}  // namespace paceline::comm

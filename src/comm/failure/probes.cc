#include "comm/failure/probes.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/clock.h"
#include "base/process.h"
#include "base/text.h"

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

Socket new_local_socket() { return Socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

enum class PeerState { absent, there, stopped, idle };

/// The state of a process, and its process id if known, else 0.
std::pair<PeerState, pid_t> look_for(const Launch& launch, int local) {
  const auto name = name_of(launch, local);
  const Socket socket = new_local_socket();
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name.address), name.size) != 0)
    return {errno == ECONNREFUSED ? PeerState::absent : PeerState::there,
            0};  // EAGAIN: too many have asked already
  ucred owner{};
  socklen_t size = sizeof owner;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &owner, &size) != 0) return {PeerState::there, 0};
  return {base::state_of_process(owner.pid) == 'T' ? PeerState::stopped : PeerState::there, owner.pid};
}

using std::chrono::milliseconds;

constexpr milliseconds kToAnswer{500};
/// How long to wait for the question of a connected process; a stranger that sends none must not block others
/// longer.
constexpr milliseconds kToAsk{200};
/// Shorter than processes stay to answer (ProcessGroup::leave_after_failure()); otherwise those that have
/// left would be called missing.
constexpr milliseconds kForThoseAbove{1000};

std::string question(const Address& asked) { return fmt::format("there? {}", asked.token); }
std::string answer(const Address& asked) { return fmt::format("here {}", asked.token); }

/// `silent_hosts`: hosts on which a process did not respond; they are not asked again.
bool answers(const Address& asked, std::vector<std::string>& silent_hosts) {
  if (std::find(silent_hosts.begin(), silent_hosts.end(), asked.host) != silent_hosts.end()) return false;
  const auto begin = base::Clock::now();
  const Socket socket(connect_to(asked, kToAnswer));
  if (!socket.is_open()) {
    // The host of an ended process refuses the connection at once. A stopped process accepts it, and its host
    // may be fine.
    if (base::Clock::now() - begin >= kToAnswer) silent_hosts.emplace_back(asked.host);
    return false;
  }
  write_line(socket.get(), question(asked));
  return read_line(socket.get(), kToAnswer) == answer(asked);
}

}  // namespace

StartupProbe::StartupProbe(const Launch& launch) : launch_(launch) {
  if (launch_.job.empty() || launch_.local < 0 || launch_.locals < 1) return;
  const auto name = name_of(launch_, launch_.local);
  socket_ = new_local_socket();
  if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&name.address), name.size) != 0 ||
      ::listen(socket_.get(), SOMAXCONN) != 0)
    socket_.close();
}

StartupProbe::CpuTimes StartupProbe::cpu_times() const {
  CpuTimes cpu_times;
  for (int local = 0; socket_.is_open() && local < launch_.locals; ++local) {
    const pid_t process = local == launch_.local ? ::getpid() : look_for(launch_, local).second;
    cpu_times.push_back(process == 0 ? std::nullopt : base::ran_for_ns(process));
  }
  return cpu_times;
}

std::vector<std::string> StartupProbe::absent(const CpuTimes& before) const {
  const auto was_idle = [&](int local, pid_t process) {
    const auto at = static_cast<std::size_t>(local);
    return at < before.size() && before[at] && before[at] == base::ran_for_ns(process);
  };
  if (was_idle(launch_.local, ::getpid()))
    return {};  // its own first thread was idle too, so nothing can be concluded about others
  std::vector<std::string> sentences;
  for (int local = 0; socket_.is_open() && local < launch_.locals; ++local) {
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

SurvivorProbe::SurvivorProbe(const std::string& interface, bool is_on_this_host)
    : LineListener(interface, is_on_this_host, {.patience = kToAsk},
                   [](const Address& own, std::string_view line, int socket) {
                     if (line == question(own)) write_line(socket, answer(own));
                   }) {}

Called probe_survivors(int process, std::span<const Address> addresses) {
  Called called{.lowest = process};
  std::vector<std::string> silent_hosts;
  for (int other = 1; other < process; ++other) {
    if (answers(addresses[static_cast<std::size_t>(other)], silent_hosts)) {
      called.lowest = other;
      return called;
    }
    called.missing.push_back(other);
  }
  return called;
}

std::vector<int> missing_above(int process, std::span<const Address> addresses) {
  std::vector<int> missing;
  std::vector<std::string> silent_hosts;
  const auto until = base::Clock::now() + kForThoseAbove;
  for (auto other = static_cast<std::size_t>(process) + 1;
       other < addresses.size() && base::Clock::now() < until; ++other)
    if (!answers(addresses[other], silent_hosts)) missing.push_back(static_cast<int>(other));
  return missing;
}

}  // namespace paceline::comm

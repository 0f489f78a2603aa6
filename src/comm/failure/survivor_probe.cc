#include "comm/failure/survivor_probe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/clock.h"
#include "base/error.h"

namespace paceline::comm {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kToAnswer{500};
/// How long to wait for the question of a connected process; a stranger that sends none must not block others
/// longer.
constexpr milliseconds kToAsk{200};
/// Shorter than processes stay to answer (ProcessGroup::farewell()); otherwise those that have left would be
/// called missing.
constexpr milliseconds kForThoseAbove{1000};

std::string question(const Address& asked) { return fmt::format("there? {}", asked.token); }
std::string answer(const Address& asked) { return fmt::format("here {}", asked.token); }

/// `silent_hosts`: hosts on which a process did not respond; they are not asked again.
bool answers(const Address& asked, std::vector<std::string>& silent_hosts) {
  if (std::find(silent_hosts.begin(), silent_hosts.end(), asked.host) != silent_hosts.end()) return false;
  const auto begin = base::Clock::now();
  const Socket socket(connect_to(asked, kToAnswer));
  if (socket.get() < 0) {
    // The host of an ended process refuses the connection at once. A stopped process accepts it, and its host
    // may be fine.
    if (base::Clock::now() - begin >= kToAnswer) silent_hosts.emplace_back(asked.host);
    return false;
  }
  write_line(socket.get(), question(asked));
  return read_line(socket.get(), kToAnswer) == answer(asked);
}

}  // namespace

SurvivorProbe::SurvivorProbe(const std::string& interface) : address_(listen_anywhere(listener_, interface)) {
  if (::pipe2(wake_, O_CLOEXEC) != 0) {
    ::close(listener_);
    base::fail(base::ErrorKind::comm, "survivor probe: no pipe could be made: {}", std::strerror(errno));
  }
  thread_ = std::thread([this] { answer_all(); });
}

SurvivorProbe::~SurvivorProbe() {
  const char byte = 'e';
  [[maybe_unused]] const auto written = ::write(wake_[1], &byte, 1);
  thread_.join();
  for (const int descriptor : {listener_, wake_[0], wake_[1]}) ::close(descriptor);
}

void SurvivorProbe::answer_all() {
  while (true) {
    pollfd waiting[] = {{wake_[0], POLLIN, 0}, {listener_, POLLIN, 0}};
    ::poll(waiting, 2, -1);
    if (waiting[0].revents != 0) return;
    const Socket socket(::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.get() < 0) std::this_thread::sleep_for(kToAsk);  // no descriptor is free at the moment
    if (socket.get() >= 0 && read_line(socket.get(), kToAsk) == question(address_))
      write_line(socket.get(), answer(address_));
  }
}

Called probe_survivors(int process, std::span<const Address> addresses) {
  Called called{.lowest = process, .missing = {}};
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

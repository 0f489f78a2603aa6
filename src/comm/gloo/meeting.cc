#include "comm/gloo/meeting.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/clock.h"
#include "base/error.h"

// The protocol of a connection; lengths are 4 bytes, little-endian:
//   GREETING                          first, in both directions, to recognise strangers
//   's' LENGTH name LENGTH value      keep it
//   'g' LENGTH name                   answered by LENGTH value, once it was written

namespace paceline::comm::gloo {
namespace {

using base::Clock;
using std::chrono::milliseconds;

/// How long processes wait for one another before they say for whom.
constexpr milliseconds kToWaitInSilence{10000};

/// bytes of a value; real ones have some hundred bytes
constexpr std::size_t kLongest = std::size_t{1} << 24;

std::string greeting_of(const MeetingPlace& place) {
  return fmt::format("paceline meeting of {:06}{}{}\n", place.processes, place.job.empty() ? "" : " ",
                     place.job);
}

std::uint16_t port_of(const MeetingPlace& place, int number) {
  return static_cast<std::uint16_t>(place.port + number);
}

/// "29500", "29501 to 29508"
std::string ports_of(const MeetingPlace& place) {
  if (place.ports == 1) return std::to_string(place.port);
  return fmt::format("{} to {}", place.port, port_of(place, place.ports - 1));
}

std::string length_of(std::size_t size) {
  std::string text(4, '\0');
  for (std::size_t i = 0; i < 4; ++i) text[i] = static_cast<char>((size >> (8 * i)) & 0xff);
  return text;
}
std::size_t read_length(std::string_view text) {
  std::size_t size = 0;
  for (std::size_t i = 0; i < 4; ++i)
    size |= static_cast<std::size_t>(static_cast<unsigned char>(text[i])) << (8 * i);
  return size;
}

bool wait_for(int socket, short event, Clock::time_point until) {
  const auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now()).count();
  pollfd waiting{socket, event, 0};
  return left > 0 && ::poll(&waiting, 1, static_cast<int>(std::min<long>(left, 1 << 30))) > 0;
}

/// Limits how long connecting and sending may wait; 0: no limit.
void limit(int socket, milliseconds longest) {
  const timeval time{.tv_sec = longest.count() / 1000, .tv_usec = longest.count() % 1000 * 1000};
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
}

/// A connection to `address`, any of its addresses, or -1. Each address is tried for at most `patience`: a
/// firewall that drops packets would hold it for minutes.
int connect_to(const std::string& address, std::uint16_t port, milliseconds patience) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &wanted, &found) != 0) return -1;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(found, ::freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    const int socket = ::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket < 0) continue;
    limit(socket, patience);
    if (::connect(socket, one->ai_addr, one->ai_addrlen) == 0) {
      limit(socket, milliseconds(0));
      return socket;
    }
    ::close(socket);
  }
  return -1;
}

/// ", whose name has no address here" if that is the reason why nobody was found; else "".
std::string found_by(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), nullptr, &wanted, &found);
  if (error != 0) return fmt::format(" (the name '{}' has no address here: {})", host, ::gai_strerror(error));
  ::freeaddrinfo(found);
  return "";
}

bool send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

/// A socket that listens at `port` on all addresses of this host; -1 and errno if the port is not free.
int listen_at(std::uint16_t port) {
  const int on = 1, off = 0;
  int listener = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  const sockaddr* here = reinterpret_cast<const sockaddr*>(&six);
  socklen_t size = sizeof six;
  if (listener >= 0) {
    ::setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  } else {  // no IPv6 here
    listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    here = reinterpret_cast<const sockaddr*>(&four);
    size = sizeof four;
  }
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(listener, here, size) == 0 && ::listen(listener, SOMAXCONN) == 0) return listener;
  const int error = errno;
  ::close(listener);
  errno = error;
  return -1;
}

}  // namespace

MeetingServer::MeetingServer(const MeetingPlace& place) : greeting_(greeting_of(place)) {
  for (int number = 0; number < place.ports && listener_ < 0; ++number)
    listener_ = listen_at(port_of(place, number));
  if (listener_ < 0 || ::pipe2(wake_, O_CLOEXEC) != 0) {
    const int error = errno;
    if (listener_ >= 0) ::close(listener_);
    base::fail(base::ErrorKind::comm,
               "gloo: process 0 cannot listen at MASTER_PORT {}: {}; set another port, the same for all "
               "processes",
               ports_of(place), std::strerror(error));
  }
  thread_ = std::thread([this] { serve(); });
}

MeetingServer::~MeetingServer() {
  const char byte = 'e';
  [[maybe_unused]] const auto written = ::write(wake_[1], &byte, 1);
  thread_.join();
  for (const auto& guest : guests_) ::close(guest.socket);
  for (const int descriptor : {listener_, wake_[0], wake_[1]}) ::close(descriptor);
}

void MeetingServer::serve() {
  while (true) {
    std::vector<pollfd> waiting{{wake_[0], POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const auto& guest : guests_) waiting.push_back({guest.socket, POLLIN, 0});
    ::poll(waiting.data(), waiting.size(), -1);
    if (waiting[0].revents != 0) return;
    for (std::size_t i = guests_.size(); i-- > 0;) {
      if (waiting[i + 2].revents == 0 || read_from(guests_[i])) continue;
      ::close(guests_[i].socket);
      guests_.erase(guests_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    for (auto& guest : guests_) answer(guest);
    if (waiting[1].revents == 0) continue;
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket >= 0) guests_.push_back({.socket = socket});
  }
}

/// False: the guest has left, or is a stranger.
bool MeetingServer::read_from(Guest& guest) {
  char bytes[4096];
  const auto count = ::recv(guest.socket, bytes, sizeof bytes, MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (count <= 0) return false;
  guest.incoming.append(bytes, static_cast<std::size_t>(count));
  if (!guest.greeted) {
    if (guest.incoming.size() < greeting_.size()) return greeting_.starts_with(guest.incoming);
    if (!guest.incoming.starts_with(greeting_)) return false;
    guest.incoming.erase(0, greeting_.size());
    guest.greeted = send_all(guest.socket, greeting_);
  }
  while (guest.greeted && take(guest)) {
  }
  return guest.greeted;
}

/// One whole request, if it has come.
bool MeetingServer::take(Guest& guest) {
  const std::string_view in = guest.incoming;
  if (in.size() < 5) return false;
  const std::size_t name = read_length(in.substr(1));
  if (name > kLongest || in.size() < 5 + name) {
    if (name > kLongest) guest.greeted = false;
    return false;
  }
  const std::string key(in.substr(5, name));
  std::size_t used = 5 + name;
  if (in[0] == 's') {
    if (in.size() < used + 4) return false;
    const std::size_t value = read_length(in.substr(used));
    if (value > kLongest) guest.greeted = false;
    if (value > kLongest || in.size() < used + 4 + value) return false;
    kept_[key] = std::string(in.substr(used + 4, value));
    used += 4 + value;
  } else {
    guest.wants = key;
  }
  guest.incoming.erase(0, used);
  return true;
}

void MeetingServer::answer(Guest& guest) {
  const auto found = guest.wants.empty() ? kept_.end() : kept_.find(guest.wants);
  if (found == kept_.end()) return;
  guest.wants.clear();
  (void)send_all(guest.socket, length_of(found->second.size()) + found->second);
}

Meeting::Meeting(const MeetingPlace& place, milliseconds longest)
    : place_(fmt::format("{}:{}", place.host, ports_of(place))),
      process_(place.process),
      say_(place.say),
      longest_(longest) {
  // With several ports the answering process may be a stranger, so the patience is short; a busy process 0 is
  // asked again.
  const milliseconds patience(place.ports == 1 ? 5000 : 1000);
  const auto begin = Clock::now(), until = begin + longest;
  bool is_silent = true;
  for (auto pause = milliseconds(10);; pause = std::min(2 * pause, milliseconds(500))) {
    for (int number = 0; number < place.ports; ++number)
      if (try_port(place, number, patience)) return;
    if (Clock::now() > until)
      base::fail(base::ErrorKind::comm,
                 "gloo: process 0 was not found at MASTER_ADDR:MASTER_PORT {} within {} s{}; check that the "
                 "process with RANK=0 was started there and that no firewall blocks the port",
                 place_, longest.count() / 1000, found_by(place.host));
    if (say_ && is_silent && Clock::now() > begin + kToWaitInSilence) {
      say_(
          fmt::format("process {} has not reached process 0 at MASTER_ADDR:MASTER_PORT {} yet{}; it goes on "
                      "trying, {} s in all (--meet-within)",
                      process_, place_, found_by(place.host), longest.count() / 1000));
      is_silent = false;
    }
    std::this_thread::sleep_for(pause);
  }
}

/// Whether process 0 answers at that port; `patience` is for connecting and for the answer, each.
///
/// Errors   those of the constructor, if there is only one port
bool Meeting::try_port(const MeetingPlace& place, int number, milliseconds patience) {
  socket_ = connect_to(place.host, port_of(place, number), patience);
  if (socket_ < 0) return false;
  const int on = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const auto greeting = greeting_of(place);
  try {
    send(greeting);
    if (receive(greeting.size(), Clock::now() + patience, "a greeting") != greeting)
      base::fail(
          base::ErrorKind::comm,
          "gloo: another program, or a run with another WORLD_SIZE, answers at MASTER_ADDR:MASTER_PORT {}; "
          "set another port, the same for all processes",
          place_);
  } catch (const base::Error&) {
    ::close(socket_);
    socket_ = -1;
    if (place.ports == 1) throw;
    return false;
  }
  place_ = fmt::format("{}:{}", place.host, port_of(place, number));
  return true;
}

Meeting::~Meeting() { ::close(socket_); }

void Meeting::send(const std::string& bytes) {
  if (!send_all(socket_, bytes))
    base::fail(base::ErrorKind::comm, "gloo: the connection to process 0 at {} is broken", place_);
}

std::string Meeting::receive(std::size_t bytes, Clock::time_point until, const std::string& what) {
  std::string text(bytes, '\0');
  std::size_t have = 0;
  while (have < bytes) {
    if (!wait_for(socket_, POLLIN, until))
      base::fail(
          base::ErrorKind::comm,
          "gloo: {} did not arrive in time from process 0 at MASTER_ADDR:MASTER_PORT {}; check that all "
          "WORLD_SIZE processes were started and that no other program uses this port",
          what, place_);
    const auto count = ::recv(socket_, text.data() + have, bytes - have, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      base::fail(base::ErrorKind::comm,
                 "gloo: the connection to MASTER_ADDR:MASTER_PORT {} was closed: process 0 has failed or "
                 "has another WORLD_SIZE, or another program answers there; read what process 0 printed",
                 place_);
    have += static_cast<std::size_t>(count);
  }
  return text;
}

void Meeting::set(const std::string& key, const std::vector<char>& data) {
  send(fmt::format("s{}{}{}{}", length_of(key.size()), key, length_of(data.size()),
                   std::string_view(data.data(), data.size())));
}

std::string Meeting::ask(const std::string& key, milliseconds longest) {
  const auto until = Clock::now() + longest;
  send(fmt::format("g{}{}", length_of(key.size()), key));
  // Process 0 speaks for all, since all wait for the same one.
  if (say_ && process_ == 0 && longest > kToWaitInSilence &&
      !wait_for(socket_, POLLIN, Clock::now() + kToWaitInSilence))
    say_(
        fmt::format("process {} has not come to process 0 at MASTER_ADDR:MASTER_PORT {} yet; the others wait "
                    "for it, {} s in all (--meet-within)",
                    key, place_, longest_.count() / 1000));
  const auto what = fmt::format("the contribution of process {}", key);
  const std::size_t size = read_length(receive(4, until, what));
  if (size > kLongest) base::fail(base::ErrorKind::comm, "gloo: {} has {} bytes", what, size);
  return receive(size, until, what);
}

std::vector<char> Meeting::get(const std::string& key) {
  const auto text = ask(key, longest_);
  return {text.begin(), text.end()};
}

void Meeting::wait(const std::vector<std::string>& keys) { wait(keys, longest_); }
void Meeting::wait(const std::vector<std::string>& keys, const milliseconds& longest) {
  const auto until = Clock::now() + longest;
  for (const auto& key : keys) (void)ask(key, std::chrono::duration_cast<milliseconds>(until - Clock::now()));
}

std::string Meeting::own_address() const {
  sockaddr_storage here{};
  socklen_t size = sizeof here;
  char text[NI_MAXHOST] = {};
  ::getsockname(socket_, reinterpret_cast<sockaddr*>(&here), &size);
  ::getnameinfo(reinterpret_cast<sockaddr*>(&here), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  std::string address = text;
  if (address.starts_with("::ffff:")) address.erase(0, 7);  // an IPv4 address, as an IPv6 socket reports it
  return address;
}

}  // namespace paceline::comm::gloo

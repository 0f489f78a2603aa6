#include "comm/line_socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <random>
#include <thread>

#include "base/clock.h"
#include "base/error.h"

namespace paceline::comm {
namespace {

/// Calls `take` for each address of an interface that is up.
void for_each_address(const std::function<void(const ifaddrs&)>& take) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owned(list, ::freeifaddrs);
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next)
    if (one->ifa_addr != nullptr && (one->ifa_flags & IFF_UP) != 0) take(*one);
}

std::string text_of_address(const ifaddrs& one) {
  const socklen_t size = one.ifa_addr->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  char text[NI_MAXHOST] = {};
  if (::getnameinfo(one.ifa_addr, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return text;
}

using base::Clock;
using std::chrono::milliseconds;

int new_socket() { return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

int connect_to_ipv4(std::uint32_t ipv4, std::uint16_t port, milliseconds longest) {
  Socket socket(new_socket());
  if (!socket.is_open()) return -1;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = ipv4;
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    if (errno != EINPROGRESS || !wait_for(socket.get(), POLLOUT, longest)) return -1;
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return -1;
  }
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket.release();
}

}  // namespace

std::string address_of_interface(const std::string& name) {
  std::string four, six;
  std::vector<std::string> others;
  for_each_address([&](const ifaddrs& one) {
    const bool is_four = one.ifa_addr->sa_family == AF_INET;
    if (!is_four && one.ifa_addr->sa_family != AF_INET6) return;
    if (!is_four) {
      const auto& address = reinterpret_cast<const sockaddr_in6*>(one.ifa_addr)->sin6_addr;
      if (IN6_IS_ADDR_LINKLOCAL(&address)) return;
    }
    if (one.ifa_name == name) {
      auto& place = is_four ? four : six;
      if (place.empty()) place = text_of_address(one);
    } else if (std::ranges::find(others, one.ifa_name) == others.end()) {
      others.emplace_back(one.ifa_name);
    }
  });
  if (!four.empty()) return four;
  if (!six.empty()) return six;
  base::fail(
      base::ErrorKind::comm,
      "--interface {}: host {} has no network interface of that name that is up and has an address; it has {}",
      name, base::host_name(), others.empty() ? "none" : fmt::format("{}", fmt::join(others, ", ")));
}

std::vector<std::uint32_t> ipv4_addresses(const std::string& interface) {
  std::vector<std::uint32_t> addresses;
  for_each_address([&](const ifaddrs& one) {
    if (one.ifa_addr->sa_family != AF_INET) return;
    const auto ipv4 = reinterpret_cast<const sockaddr_in*>(one.ifa_addr)->sin_addr.s_addr;
    if (interface.empty() ? ipv4 != htonl(INADDR_LOOPBACK) : one.ifa_name == interface)
      addresses.push_back(ipv4);
  });
  return addresses;
}

std::string text_of(const Address& address) {
  return fmt::format("{} {} {} {}", address.token, address.port, address.host, fmt::join(address.ipv4, " "));
}

std::optional<Address> address_of(std::string_view text) {
  const auto token = number_of(word_of(text)), port = number_of(word_of(text));
  const auto host = word_of(text);
  Address address;
  if (!token || !port || *port > 65535 || host.empty() || host.size() >= sizeof address.host)
    return std::nullopt;
  address.token = *token;
  address.port = static_cast<std::uint16_t>(*port);
  std::copy(host.begin(), host.end(), address.host);
  for (auto& ipv4 : address.ipv4) {
    const auto number = number_of(word_of(text));
    if (!number) return std::nullopt;
    ipv4 = static_cast<std::uint32_t>(*number);
  }
  return address;
}

bool wait_for(int socket, short event, milliseconds longest) {
  pollfd waiting{socket, event, 0};
  return ::poll(&waiting, 1, static_cast<int>(longest.count())) > 0;
}

int connect_to(const Address& address, milliseconds longest) {
  std::vector<std::uint32_t> candidates;
  if (base::host_name() == address.host) candidates.push_back(htonl(INADDR_LOOPBACK));
  for (const auto ipv4 : address.ipv4)
    if (ipv4 != 0) candidates.push_back(ipv4);
  for (const auto ipv4 : candidates)
    if (const int socket = connect_to_ipv4(ipv4, address.port, longest); socket >= 0) return socket;
  return -1;
}

Address listen_anywhere(Socket& listener, const std::string& interface, bool is_on_this_host) {
  Address address;
  std::random_device random;
  address.token = (std::uint64_t{random()} << 32) | random();
  std::strncpy(address.host, base::host_name().c_str(), sizeof address.host - 1);
  Socket socket(new_socket());
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(is_on_this_host ? INADDR_LOOPBACK : INADDR_ANY);
  socklen_t size = sizeof here;
  if (!socket.is_open() || ::bind(socket.get(), reinterpret_cast<sockaddr*>(&here), size) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&here), &size) != 0)
    base::fail(base::ErrorKind::comm, "connections of processes: no port could be opened on {}: {}",
               address.host, std::strerror(errno));
  address.port = ntohs(here.sin_port);
  listener = std::move(socket);
  const auto found = ipv4_addresses(interface);
  std::copy_n(found.begin(), std::min(found.size(), std::size(address.ipv4)), address.ipv4);
  return address;
}

std::optional<FirstLines::Arrival> FirstLines::next(milliseconds longest, int wake) {
  for (const auto until = Clock::now() + longest;;) {
    auto next = until;
    std::vector<pollfd> look{{wake, POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const auto& one : waiting_) {
      look.push_back({one.socket.get(), POLLIN, 0});
      next = std::min(next, one.until);
    }
    const auto left = std::chrono::ceil<milliseconds>(next - Clock::now()).count();
    constexpr std::int64_t kMost = 1 << 30;
    ::poll(look.data(), look.size(), static_cast<int>(std::clamp<std::int64_t>(left, 0, kMost)));
    if (look[0].revents != 0) return std::nullopt;
    const auto now = Clock::now();
    for (std::size_t i = 0, at = 2; i < waiting_.size(); ++at) {
      const auto read = look[at].revents != 0 ? read_from(waiting_[i]) : Read::more;
      if (read == Read::line) {
        Arrival arrival{.socket = waiting_[i].socket.release(), .line = std::move(waiting_[i].text)};
        leave(i);
        return arrival;
      }
      if (read == Read::stranger || waiting_[i].until <= now)
        leave(i);
      else
        ++i;
    }
    if (now >= until) return std::nullopt;
    if (look[1].revents != 0) accept_some();
  }
}

FirstLines::Read FirstLines::read_from(Waiting& one) const {
  char bytes[256];
  const auto seen = ::recv(one.socket.get(), bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
  if (seen < 0 && (errno == EAGAIN || errno == EINTR)) return Read::more;
  if (seen <= 0) return Read::stranger;
  const auto end = std::string_view(bytes, static_cast<std::size_t>(seen)).find('\n');
  const bool is_whole = end != std::string_view::npos;
  const std::size_t text = is_whole ? end : static_cast<std::size_t>(seen);
  if (::recv(one.socket.get(), bytes, text + (is_whole ? 1 : 0), MSG_DONTWAIT) < 0) return Read::stranger;
  one.text.append(bytes, text);
  if (one.text.size() >= limits_.line) return Read::stranger;
  return is_whole ? Read::line : Read::more;
}

void FirstLines::accept_some() {
  constexpr int kAtOnce = 16;  // then those that wait are read again
  constexpr milliseconds kWithoutDescriptor{100};
  for (int i = 0; i < kAtOnce; ++i) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    const bool is_full = socket < 0 && (errno == EMFILE || errno == ENFILE);
    if (is_full) std::this_thread::sleep_for(kWithoutDescriptor);
    if (socket < 0 && !is_full) return;
    if (!waiting_.empty() && (is_full || waiting_.size() >= limits_.waiting)) leave(0);
    if (is_full) return;
    waiting_.push_back({.socket = Socket(socket), .until = Clock::now() + limits_.patience});
  }
}

void FirstLines::leave(std::size_t index) {
  waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(index));
}

LineListener::LineListener(const std::string& interface, bool is_on_this_host, FirstLines::Limits limits,
                           Take take)
    : address_(listen_anywhere(listener_, interface, is_on_this_host)), wake_(::eventfd(0, EFD_CLOEXEC)) {
  if (!wake_.is_open())
    base::fail(base::ErrorKind::comm, "connections of processes: no eventfd could be made: {}",
               std::strerror(errno));
  thread_ = std::thread([this, limits, take = std::move(take)] {
    constexpr milliseconds kLongest{60000};  // the end wakes the wait anyhow
    FirstLines arrivals(listener_.get(), limits);
    while (!wait_for(wake_.get(), POLLIN, milliseconds(0))) {
      const auto arrival = arrivals.next(kLongest, wake_.get());
      if (!arrival) continue;
      const Socket socket(arrival->socket);
      take(address_, arrival->line, socket.get());
    }
  });
}

LineListener::~LineListener() {
  ::eventfd_write(wake_.get(), 1);
  thread_.join();
}

void write_line(int socket, std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  text += '\n';
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto sent = ::send(socket, rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent <= 0) return;  // the buffer is full or the connection broken; the reading side notices
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::string_view word_of(std::string_view& line) {
  const auto space = line.find(' ');
  const auto word = line.substr(0, space);
  line = space == std::string_view::npos ? std::string_view() : line.substr(space + 1);
  return word;
}

std::optional<std::string> read_line(int socket, milliseconds longest, std::size_t most) {
  std::string line;
  const auto until = Clock::now() + longest;
  while (line.size() < most) {
    const auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now());
    if (left.count() <= 0 || !wait_for(socket, POLLIN, left)) return std::nullopt;
    char letter = 0;
    if (::recv(socket, &letter, 1, 0) <= 0) return std::nullopt;
    if (letter == '\n') return line;
    line += letter;
  }
  return std::nullopt;
}

}  // namespace paceline::comm

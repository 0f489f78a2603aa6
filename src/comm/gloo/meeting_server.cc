#include "comm/gloo/meeting_server.h"

#include <arpa/inet.h>
#include <fmt/ranges.h>
#include <netdb.h>
#include <netinet/in.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <span>
#include <sstream>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

namespace paceline::comm::gloo {
namespace {

using base::Clock;
using std::chrono::milliseconds;

/// Connections that are accepted before those that are here are served again.
constexpr int kAcceptedAtOnce = 16;

/// How long to wait when the process has no descriptor for another connection.
constexpr milliseconds kWithoutDescriptor{100};

std::string keyed_hash(std::string_view key, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
  unsigned int bytes = 0;
  ::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()),
         reinterpret_cast<const unsigned char*>(text.data()), text.size(), sum.data(), &bytes);
  return fmt::format("{:02x}", fmt::join(std::span(sum).first(bytes), ""));
}

/// A socket that listens at `port` of `address` ("": of all addresses of this host); none and errno if the
/// port is not free.
base::Descriptor listen_at(const std::string& address, std::uint16_t port) {
  const int on = 1, off = 0;
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  const bool is_four = ::inet_pton(AF_INET, address.c_str(), &four.sin_addr) == 1;
  const bool is_six = ::inet_pton(AF_INET6, address.c_str(), &six.sin6_addr) == 1;
  const sockaddr* here = reinterpret_cast<const sockaddr*>(&six);
  socklen_t size = sizeof six;
  const auto new_socket = [](int family) {
    return base::Descriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  };
  auto listener = is_four ? base::Descriptor() : new_socket(AF_INET6);
  if (listener.is_open()) {
    ::setsockopt(listener.get(), IPPROTO_IPV6, IPV6_V6ONLY, is_six ? &on : &off, sizeof off);
  } else {  // an IPv4 address, or no IPv6 here
    listener = new_socket(AF_INET);
    here = reinterpret_cast<const sockaddr*>(&four);
    size = sizeof four;
  }
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(listener.get(), here, size) != 0 || ::listen(listener.get(), SOMAXCONN) != 0) return {};
  return listener;
}

std::uint16_t port_of_listener(int listener) {
  sockaddr_storage here{};
  socklen_t size = sizeof here;
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&here), &size);
  return ntohs(here.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in*>(&here)->sin_port
                                         : reinterpret_cast<const sockaddr_in6*>(&here)->sin6_port);
}

}  // namespace

std::string make_nonce() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return "";
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

std::string as_text(const sockaddr_storage& address, socklen_t size) {
  char text[NI_MAXHOST] = {};
  ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, text, sizeof text, nullptr, 0,
                NI_NUMERICHOST);
  const std::string_view whole = text;
  return std::string(whole.substr(whole.starts_with("::ffff:") ? 7 : 0));
}

std::string ports_of(const Launch& launch) {
  if (launch.meeting_ports == 1) return std::to_string(launch.meeting_port);
  return fmt::format("{} to {}", launch.meeting_port, launch.meeting_port_at(launch.meeting_ports - 1));
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream words(line);
  return {std::istream_iterator<std::string>(words), {}};
}

std::string hello_of(const Launch& launch, const std::string& nonce) {
  return fmt::format("{} {} {} {} {} {}", kMeeting, launch.processes, launch.process,
                     launch.secret.empty() ? "open" : "secret", nonce, keyed_hash("job", launch.job));
}

std::string proof_of(const std::string& secret, std::string_view who, const std::string& hello,
                     const std::string& nonce) {
  return keyed_hash(secret, fmt::format("{} {} {}", who, hello, nonce));
}

bool is_same_proof(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string length_of(std::size_t size) {
  std::string text(4, '\0');
  for (std::size_t i = 0; i < 4; ++i) text[i] = static_cast<char>((size >> (8 * i)) & 0xff);
  return text;
}

std::size_t read_length(std::string_view bytes) {
  std::size_t size = 0;
  for (std::size_t i = 0; i < 4; ++i)
    size |= static_cast<std::size_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return size;
}

std::size_t longest_value(int processes) {
  constexpr std::size_t kLeast = std::size_t{64} << 10, kEach = 256;
  return std::max(kLeast, kEach * static_cast<std::size_t>(processes));
}

MeetingServer::MeetingServer(Launch launch, Say say, const MeetingLimits& limits)
    : launch_(std::move(launch)), say_(std::move(say)), limits_(limits) {
  for (int number = 0; number < launch_.meeting_ports && !listener_.is_open(); ++number)
    listener_ = listen_at(launch_.listen_at, launch_.meeting_port_at(number));
  if (listener_.is_open()) wake_ = base::Descriptor(::eventfd(0, EFD_CLOEXEC));
  if (!wake_.is_open())
    base::fail(base::ErrorKind::comm,
               "gloo: process 0 cannot listen at MASTER_PORT {}: {}; set another port, the same for all "
               "processes",
               ports_of(launch_), std::strerror(errno));
  port_ = port_of_listener(listener_.get());
  thread_ = std::thread([this] { serve(); });
}

MeetingServer::~MeetingServer() {
  ::eventfd_write(wake_.get(), 1);
  thread_.join();
}

void MeetingServer::serve() {
  while (listener_.is_open() || !guests_.empty()) {
    std::vector<pollfd> waiting{{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    auto next = Clock::time_point::max();
    for (const auto& guest : guests_) {
      // Nothing is read from a guest before it has its answer, so what is kept of it has a bound.
      const short event = !guest.outgoing.empty() ? POLLOUT : guest.wants.empty() ? POLLIN : POLLRDHUP;
      waiting.push_back({guest.socket.get(), event, 0});
      if (guest.stage != Stage::in) next = std::min(next, guest.until);
    }
    const auto left = std::chrono::ceil<milliseconds>(next - Clock::now()).count();
    ::poll(waiting.data(), waiting.size(),
           next == Clock::time_point::max() ? -1 : static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (waiting[0].revents != 0) return;
    const auto now = Clock::now();
    for (std::size_t i = 0, at = 2; i < guests_.size(); ++at) {
      const bool is_late = guests_[i].stage != Stage::in && guests_[i].until <= now;
      if (is_late || (waiting[at].revents != 0 && !is_served(guests_[i])))
        guests_.erase(guests_.begin() + static_cast<std::ptrdiff_t>(i));
      else
        ++i;
    }
    for (auto& guest : guests_) answer(guest);
    if (listener_.is_open() && have_all_given()) {
      listener_.close();
      std::erase_if(guests_, [](const Guest& guest) { return guest.stage != Stage::in; });
    }
    if (listener_.is_open() && waiting[1].revents != 0) accept_some();
  }
}

void MeetingServer::accept_some() {
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    base::Descriptor socket(
        ::accept4(listener_.get(), reinterpret_cast<sockaddr*>(&peer), &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open() && (errno == EMFILE || errno == ENFILE)) {
      make_room();
      std::this_thread::sleep_for(kWithoutDescriptor);
    }
    if (!socket.is_open()) return;
    const auto strangers =
        std::ranges::count_if(guests_, [](const Guest& one) { return one.stage != Stage::in; });
    if (static_cast<std::size_t>(strangers) >= limits_.strangers) make_room();
    guests_.push_back(
        {.socket = std::move(socket), .from = as_text(peer, size), .until = Clock::now() + limits_.to_greet});
  }
}

/// Closes the oldest connection that has said nothing, else the oldest that has not proved itself.
void MeetingServer::make_room() {
  auto oldest = guests_.end();
  for (auto guest = guests_.begin(); guest != guests_.end(); ++guest)
    if (guest->stage != Stage::in && (oldest == guests_.end() || std::pair(guest->stage, guest->until) <
                                                                     std::pair(oldest->stage, oldest->until)))
      oldest = guest;
  if (oldest != guests_.end()) guests_.erase(oldest);
}

/// False: the guest has left, or is a stranger.
bool MeetingServer::is_served(Guest& guest) {
  if (!guest.outgoing.empty()) {
    const auto sent =
        ::send(guest.socket.get(), guest.outgoing.data(), guest.outgoing.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    guest.outgoing.erase(0, static_cast<std::size_t>(sent));
    if (guest.outgoing.empty()) return !guest.leaves && take_all(guest);
    return true;
  }
  if (!guest.wants.empty()) return false;  // it has left while it waited for an answer
  char bytes[4096];
  const auto count = ::recv(guest.socket.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  if (count == 0) return false;
  guest.incoming.append(bytes, static_cast<std::size_t>(count));
  return take_all(guest);
}

/// Takes what has come, up to the first thing that must be answered. False: it is a stranger.
bool MeetingServer::take_all(Guest& guest) {
  while (guest.stage != Stage::in && guest.outgoing.empty()) {
    const auto end = guest.incoming.find('\n');
    if (end == std::string::npos) return guest.incoming.size() < kLongestGreeting;
    if (end >= kLongestGreeting) return false;
    const auto line = guest.incoming.substr(0, end);
    guest.incoming.erase(0, end + 1);
    if (guest.stage == Stage::proof) {
      take_proof(guest, line);
    } else {
      if (!line.starts_with(kMeeting)) return false;
      take_hello(guest, line);
    }
  }
  while (guest.stage == Stage::in && guest.outgoing.empty() && guest.wants.empty())
    if (!take_request(guest)) return !guest.leaves;
  return true;
}

void MeetingServer::turn_away(Guest& guest, std::string_view how, const std::string& why) {
  guest.outgoing = fmt::format("{}{}\n", how, why);
  guest.leaves = true;
}

void MeetingServer::say_once(bool& said, const std::string& text) const {
  if (!std::exchange(said, true) && say_) say_(text);
}

void MeetingServer::take_hello(Guest& guest, const std::string& line) {
  const auto words = words_of(line);
  constexpr std::size_t kWords = 6;
  const auto processes = words.size() == kWords ? base::to_number<int>(words[1]) : std::nullopt;
  const auto process = words.size() == kWords ? base::to_number<int>(words[2]) : std::nullopt;
  if (!processes || !process) return turn_away(guest, kElsewhere, "the greeting is not understood");
  if (*processes != launch_.processes)
    return turn_away(guest, kElsewhere,
                     fmt::format("the run that meets there has WORLD_SIZE {}, and process {} says {}",
                                 launch_.processes, *process, *processes));
  if (*process < 0 || *process >= launch_.processes)
    return turn_away(guest, kElsewhere,
                     fmt::format("RANK {} is not below WORLD_SIZE {}", *process, *processes));
  if (words[5] != keyed_hash("job", launch_.job))
    return turn_away(guest, kElsewhere, "another run meets there");
  if ((words[3] == "open") != launch_.secret.empty())
    return turn_away(guest, kElsewhere,
                     launch_.secret.empty()
                         ? "process 0 has no secret; give all processes the same PACELINE_SECRET, or none"
                         : "process 0 has a secret; give all processes the same PACELINE_SECRET");
  guest.process = *process;
  guest.hello = line;
  guest.nonce = make_nonce();
  if (guest.nonce.empty()) return turn_away(guest, kRefused, "the host of process 0 has no random numbers");
  guest.outgoing = fmt::format("{} {} {}\n", kMeeting, guest.nonce,
                               proof_of(launch_.secret, "server", guest.hello, guest.nonce));
  guest.stage = Stage::proof;
}

void MeetingServer::take_proof(Guest& guest, const std::string& line) {
  if (!is_same_proof(line, proof_of(launch_.secret, "guest", guest.hello, guest.nonce))) {
    say_once(said_secret_,
             fmt::format("a process at {} that calls itself RANK={} has another PACELINE_SECRET than "
                         "process 0; it was turned away",
                         guest.from, guest.process));
    return turn_away(guest, kElsewhere,
                     "process 0 has another secret; give all processes the same PACELINE_SECRET");
  }
  const auto other = std::ranges::find_if(guests_, [&](const Guest& one) {
    return &one != &guest && one.stage == Stage::in && one.process == guest.process;
  });
  if (other != guests_.end()) {
    say_once(said_double_,
             fmt::format("a second process with RANK={} has come, from {}; it was turned away: the first "
                         "one, from {}, stays",
                         guest.process, guest.from, other->from));
    return turn_away(guest, kRefused,
                     fmt::format("process {} is here already, from {}; give each process a RANK of its own",
                                 guest.process, other->from));
  }
  guest.stage = Stage::in;
  guest.outgoing = fmt::format("{}\n", kWelcome);
}

/// Takes one whole request, if it has come. A request beyond the limits makes the guest leave.
bool MeetingServer::take_request(Guest& guest) {
  const std::string_view in = guest.incoming;
  if (in.size() < 5) return false;
  const std::size_t name = read_length(in.substr(1));
  guest.leaves = name == 0 || name > limits_.key_bytes || (in[0] != 's' && in[0] != 'g');
  if (guest.leaves || in.size() < 5 + name) return false;
  const std::string key(in.substr(5, name));
  std::size_t used = 5 + name;
  if (in[0] == 's') {
    if (in.size() < used + 4) return false;
    const std::size_t value = read_length(in.substr(used));
    const auto found = kept_.find(key);
    const auto has =
        std::ranges::count_if(kept_, [&](const auto& one) { return one.second.by == guest.process; });
    guest.leaves = value > longest_value(launch_.processes) ||
                   (found == kept_.end() ? static_cast<std::size_t>(has) >= limits_.keys_each
                                         : found->second.by != guest.process);
    if (guest.leaves || in.size() < used + 4 + value) return false;
    kept_[key] = {.value = std::string(in.substr(used + 4, value)), .by = guest.process};
    used += 4 + value;
  } else {
    guest.wants = key;
  }
  guest.incoming.erase(0, used);
  return true;
}

void MeetingServer::answer(Guest& guest) {
  if (guest.wants.empty() || !guest.outgoing.empty()) return;
  const auto found = kept_.find(guest.wants);
  if (found == kept_.end()) return;
  guest.wants.clear();
  guest.outgoing = length_of(found->second.value.size()) + found->second.value;
}

bool MeetingServer::have_all_given() const {
  std::vector<bool> given(static_cast<std::size_t>(launch_.processes), false);
  for (const auto& [key, kept] : kept_) given[static_cast<std::size_t>(kept.by)] = true;
  return std::ranges::all_of(given, [](bool one) { return one; });
}

}  // namespace paceline::comm::gloo

#include "comm/gloo/meeting.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <thread>

#include "base/clock.h"
#include "base/error.h"

namespace paceline::comm::gloo {
namespace {

using base::Clock;
using std::chrono::milliseconds;

/// How long processes wait for one another before they say for whom.
constexpr milliseconds kToWaitInSilence{10000};

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

/// A connection to `address`, any of its addresses, or none and the errno of the last one. Each address is
/// tried for at most `patience`: a firewall that drops packets would hold it for minutes.
base::Descriptor connect_to(const std::string& address, std::uint16_t port, milliseconds patience) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  errno = 0;
  if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &wanted, &found) != 0) return {};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(found, ::freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    base::Descriptor socket(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket.is_open()) continue;
    limit(socket.get(), patience);
    if (::connect(socket.get(), one->ai_addr, one->ai_addrlen) == 0) {
      limit(socket.get(), milliseconds(0));
      return socket;
    }
  }
  return {};
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

}  // namespace

Meeting::Meeting(const Launch& launch, const Say& say)
    : launch_(launch), say_(say), place_(fmt::format("{}:{}", launch.meeting_host, ports_of(launch))) {
  // With several ports the answering process may be a stranger, so the patience is short; a busy process 0 is
  // asked again.
  const milliseconds patience(launch.meeting_ports == 1 ? 5000 : 1000);
  const auto begin = Clock::now(), until = begin + launch.meet_within;
  bool is_silent = true;
  for (auto pause = milliseconds(10);; pause = std::min(2 * pause, milliseconds(500))) {
    for (int number = 0; number < launch.meeting_ports; ++number)
      if (try_port(launch.meeting_port_at(number), patience)) return;
    const auto why = why_not_.empty() ? found_by(launch.meeting_host) : fmt::format(" ({})", why_not_);
    if (Clock::now() > until)
      base::fail(base::ErrorKind::comm,
                 "gloo: process 0 was not found at MASTER_ADDR:MASTER_PORT {} within {} s{}; check that the "
                 "process with RANK=0 was started there, that no firewall blocks the port, and that no other "
                 "process has met it as RANK={}",
                 place_, launch.meet_within.count(), why, launch.process);
    if (say_ && is_silent && Clock::now() > begin + kToWaitInSilence) {
      say_(
          fmt::format("process {} has not reached process 0 at MASTER_ADDR:MASTER_PORT {} yet{}; it goes on "
                      "trying, {} s in all (--meet-within)",
                      launch.process, place_, why, launch.meet_within.count()));
      is_silent = false;
    }
    std::this_thread::sleep_for(pause);
  }
}

/// Whether process 0 answers at that port; `patience` is for connecting and for each answer.
///
/// Errors   those of the constructor
bool Meeting::try_port(std::uint16_t port, milliseconds patience) {
  socket_ = connect_to(launch_.meeting_host, port, patience);
  if (!socket_.is_open()) {
    if (errno == ECONNREFUSED && why_not_.empty())
      why_not_ = "nobody listens there: the meeting has not begun or is over";
    return false;
  }
  const int on = 1;
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const auto why = greet(patience);
  if (why.empty()) {
    place_ = fmt::format("{}:{}", launch_.meeting_host, port);
    return true;
  }
  why_not_ = fmt::format("port {}: {}", port, why);
  socket_.close();
  return false;
}

std::string Meeting::greet(milliseconds patience) {
  const auto nonce = make_nonce();
  if (nonce.empty()) base::fail(base::ErrorKind::comm, "gloo: this host has no random numbers to meet with");
  const auto hello = hello_of(launch_, nonce);
  const auto ask = [&](const std::string& line) {
    return send_all(socket_.get(), line + '\n') ? receive_line(Clock::now() + patience) : std::nullopt;
  };
  const auto fail = [&](std::string_view why) {  // the search for process 0 is over
    base::fail(base::ErrorKind::comm,
               "gloo: process {} cannot meet the others at MASTER_ADDR:MASTER_PORT {}: {}", launch_.process,
               place_, why);
  };
  // With one port, process 0 can be nowhere else.
  const auto other = [&](std::string_view why) {
    if (launch_.meeting_ports == 1) fail(why);
    return std::string(why);
  };
  const auto refusal = [&](const std::optional<std::string>& line) -> std::string {
    if (!line) return "it closed the connection without an answer: another program, or too many connections";
    const std::string_view said = *line;
    if (said.starts_with(kRefused)) fail(said.substr(kRefused.size()));
    if (said.starts_with(kElsewhere)) return other(said.substr(kElsewhere.size()));
    if (said.empty())
      return other(
          fmt::format("no greeting came within {} s; another program uses this port: set another one, the "
                      "same for all processes",
                      patience.count() / 1000));
    return other(
        "another program, or another version of Paceline, answers; set another port, the same for all processes");
  };
  const auto challenge = ask(hello);
  const auto words = challenge ? words_of(*challenge) : std::vector<std::string>();
  if (words.size() != 3 || words[0] != kMeeting) return refusal(challenge);
  if (!is_same_proof(words[2], proof_of(launch_.secret, "server", hello, words[1]))) {
    // So that process 0 says it too. Behind one of several ports may be the process 0 of another run.
    if (launch_.meeting_ports == 1) (void)send_all(socket_.get(), "another secret\n");
    return other("process 0 has another secret; give all processes the same PACELINE_SECRET");
  }
  const auto welcome = ask(proof_of(launch_.secret, "guest", hello, words[1]));
  return welcome == kWelcome ? "" : refusal(welcome);
}

std::optional<std::string> Meeting::receive_line(Clock::time_point until) {
  std::string line;
  while (line.size() < kLongestGreeting) {
    if (!wait_for(socket_.get(), POLLIN, until)) return "";
    char letter = 0;
    const auto count = ::recv(socket_.get(), &letter, 1, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    if (letter == '\n') return line;
    line += letter >= ' ' && letter <= '~' ? letter : '?';  // it may be a stranger's, and is printed
  }
  return line;
}

void Meeting::send(const std::string& bytes) {
  if (!send_all(socket_.get(), bytes))
    base::fail(base::ErrorKind::comm, "gloo: the connection to process 0 at {} is broken", place_);
}

std::string Meeting::receive(std::size_t bytes, Clock::time_point until, const std::string& what) {
  std::string text(bytes, '\0');
  std::size_t have = 0;
  while (have < bytes) {
    if (!wait_for(socket_.get(), POLLIN, until))
      base::fail(
          base::ErrorKind::comm,
          "gloo: {} did not arrive in time from process 0 at MASTER_ADDR:MASTER_PORT {}; check that all "
          "WORLD_SIZE processes were started and that no other program uses this port",
          what, place_);
    const auto count = ::recv(socket_.get(), text.data() + have, bytes - have, 0);
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
  if (say_ && launch_.process == 0 && longest > kToWaitInSilence &&
      !wait_for(socket_.get(), POLLIN, Clock::now() + kToWaitInSilence))
    say_(
        fmt::format("process {} has not come to process 0 at MASTER_ADDR:MASTER_PORT {} yet; the others wait "
                    "for it, {} s in all (--meet-within)",
                    key, place_, launch_.meet_within.count()));
  const auto what = fmt::format("the contribution of process {}", key);
  const std::size_t size = read_length(receive(4, until, what));
  if (size > longest_value(launch_.processes))
    base::fail(base::ErrorKind::comm, "gloo: {} has {} bytes", what, size);
  return receive(size, until, what);
}

std::vector<char> Meeting::get(const std::string& key) {
  const auto text = ask(key, launch_.meet_within);
  return {text.begin(), text.end()};
}

void Meeting::wait(const std::vector<std::string>& keys) { wait(keys, launch_.meet_within); }
void Meeting::wait(const std::vector<std::string>& keys, const milliseconds& longest) {
  const auto until = Clock::now() + longest;
  for (const auto& key : keys) (void)ask(key, std::chrono::duration_cast<milliseconds>(until - Clock::now()));
}

std::string Meeting::own_address() const {
  sockaddr_storage here{};
  socklen_t size = sizeof here;
  ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&here), &size);
  return as_text(here, size);
}

}  // namespace paceline::comm::gloo

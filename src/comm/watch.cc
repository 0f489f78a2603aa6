#include "comm/watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "comm/line_socket.h"
#include "comm/roll_call.h"

// The lines, each ended by '\n':
//   hello TOKEN PROCESS HOST   the first one of a process
//   at STEP MS PHASE           a heartbeat; STEP counts from 1, 0 before the first step; MS: it has waited
//   failed KIND MS TEXT        from a process to 0, from 0 to all; MS: a loss took to be known, or -
//   heard                      process 0 has noted the sender's failure
//   bye                        the end of the connection is no loss

namespace paceline::comm {
namespace {

using base::Clock;
using std::chrono::milliseconds;

/// How long process 0 reads on after its farewell.
constexpr milliseconds kForTheEnds{500};

constexpr milliseconds kToConnect{3000};

/// Of a host that goes all processes go at once: after the end of one, the others' ends are waited for.
constexpr milliseconds kForTheirNeighbours{50};

/// Between two looks at who is silent, in which a second may pass unnoticed less than a beat.
constexpr milliseconds kLook{250};

std::string place_of(std::string_view step, std::string_view phase) {
  return step == "0" ? std::string(phase) : fmt::format("{} of step {}", phase, step);
}

}  // namespace

Watch::Watch(int processes, WatchOptions options)
    : process_(0), options_(options), deadline_(options.deadline) {
  addresses_.push_back(listen_anywhere(listener_));
  self_.host = host_name();
  for (int process = 1; process < processes; ++process) peers_.push_back({.process = process});
}

Watch::Watch(int process, std::vector<Address> addresses, WatchOptions options)
    : process_(process), options_(options), deadline_(options.deadline), addresses_(std::move(addresses)) {
  const auto host = host_name();
  const Address& address = addresses_.front();
  const int socket = connect_to(address, kToConnect);
  if (socket < 0)
    base::fail(base::ErrorKind::comm,
               "heartbeats: process {} on {} cannot reach process 0 on {} (port {}); is a firewall between "
               "them?",
               process, host, address.host, address.port);
  peers_.push_back({.process = 0, .socket = socket, .host = address.host});
  write_line(socket, fmt::format("hello {} {} {}", address.token, process, host));
}

Watch::~Watch() {
  if (thread_.joinable()) {
    const char byte = 'e';
    [[maybe_unused]] const auto written = ::write(wake_[1], &byte, 1);
    thread_.join();
  }
  send_all("bye");
  if (process_ == 0) read_to_the_ends();
  for (auto& peer : peers_)
    if (peer.socket >= 0) ::close(peer.socket);
  for (const int descriptor : {listener_, wake_[0], wake_[1]})
    if (descriptor >= 0) ::close(descriptor);
}

void Watch::read_to_the_ends() {
  for (const auto& peer : peers_)
    if (peer.socket >= 0) ::shutdown(peer.socket, SHUT_WR);
  const auto until = Clock::now() + kForTheEnds;
  for (const auto& peer : peers_) {
    if (peer.socket < 0) continue;
    char bytes[4096];
    ssize_t count = 1;
    while (count > 0) {
      const auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now());
      if (left.count() <= 0 || !wait_for(peer.socket, POLLIN, left)) break;
      count = ::recv(peer.socket, bytes, sizeof bytes, MSG_DONTWAIT);
    }
  }
}

void Watch::start(Callbacks callbacks) {
  callbacks_ = std::move(callbacks);
  if (process_ == 0) accept_all();
  for (auto& peer : peers_) peer.heard = Clock::now();
  if (::pipe2(wake_, O_CLOEXEC) != 0)
    base::fail(base::ErrorKind::comm, "heartbeats: no pipe could be made: {}", std::strerror(errno));
  thread_ = std::thread([this] { serve(); });
}

void Watch::accept_all() {
  const auto until = Clock::now() + options_.connecting;
  for (std::size_t connected = 0; connected < peers_.size();) {
    const auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now());
    if (left.count() <= 0 || !wait_for(listener_, POLLIN, left)) {
      std::string missing;
      for (const auto& peer : peers_)
        if (peer.socket < 0) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", peer.process);
      base::fail(base::ErrorKind::comm,
                 "heartbeats: process {} did not reach process 0 on {} (port {}) within {} s; is a firewall "
                 "between them?",
                 missing, address().host, address().port, options_.connecting.count() / 1000);
    }
    Socket socket(::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.get() < 0) continue;
    const auto greeting = read_line(socket.get(), milliseconds(2000));
    if (!greeting) continue;
    std::string_view words = *greeting;
    const bool ours = word_of(words) == "hello" && number_of(word_of(words)) == address().token;
    const auto process = ours ? number_of(word_of(words)) : std::nullopt;
    if (!process || *process < 1 || *process > peers_.size()) continue;
    Peer& peer = peers_[static_cast<std::size_t>(*process) - 1];
    if (peer.socket >= 0) continue;
    peer.host = words;
    peer.socket = socket.release();
    ++connected;
  }
}

void Watch::at(std::int64_t step, const char* phase) {
  step_.store(step, std::memory_order_relaxed);
  phase_.store(phase, std::memory_order_relaxed);
}

void Watch::waits(int which, bool begins) {
  waiting_since_[which].store(begins ? Clock::now() : base::TimePoint{}, std::memory_order_relaxed);
}

milliseconds Watch::waited() const {
  milliseconds longest{0};
  for (const auto& one : waiting_since_)
    if (const auto since = one.load(std::memory_order_relaxed); since != base::TimePoint{})
      longest = std::max(longest, std::chrono::duration_cast<milliseconds>(Clock::now() - since));
  return longest;
}

std::string Watch::heartbeat() const {
  const char* phase = phase_.load(std::memory_order_relaxed);
  if (phase == nullptr) return fmt::format("at 0 {} the start", waited().count());
  return fmt::format("at {} {} {}", step_.load(std::memory_order_relaxed), waited().count(), phase);
}

void Watch::move(Peer& peer, std::string place, bool began) {
  if (place == peer.place) return;
  peer.place = std::move(place);
  peer.began = began;
  peer.moved = Clock::now();
}

void Watch::serve() {
  auto next_beat = Clock::now(), next_look = next_beat;
  while (true) {
    std::vector<pollfd> waiting{{wake_[0], POLLIN, 0}};
    {
      const std::lock_guard lock(mutex_);
      for (const auto& peer : peers_) waiting.push_back({peer.socket, POLLIN, 0});  // poll() ignores -1
    }
    const auto next = std::min(next_beat, next_look);
    const auto left = std::chrono::duration_cast<milliseconds>(next - Clock::now());
    ::poll(waiting.data(), waiting.size(), std::max(0, static_cast<int>(left.count()) + 1));
    if (waiting[0].revents != 0) return;
    std::vector<Peer*> ended;
    for (std::size_t i = 0; i < peers_.size(); ++i)
      if (waiting[i + 1].revents != 0 && !read_from(peers_[i])) ended.push_back(&peers_[i]);
    if (!ended.empty()) lose_ended(ended);
    if (Clock::now() >= next_beat) {
      next_beat = Clock::now() + options_.beat;
      send_all(heartbeat());
    }
    if (Clock::now() < next_look) continue;
    next_look = Clock::now() + std::min(kLook, options_.beat);
    for (auto& peer : peers_) look_for_silence(peer);
    if (process_ == 0) look_for_who_holds_up();
  }
}

bool Watch::read_from(Peer& peer) {
  char bytes[4096];
  const auto count = ::recv(peer.socket, bytes, sizeof bytes, MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (count <= 0) {
    const std::lock_guard lock(mutex_);
    ::close(peer.socket);
    peer.socket = -1;
    return peer.left;
  }
  peer.incoming.append(bytes, static_cast<std::size_t>(count));
  for (auto end = peer.incoming.find('\n'); end != std::string::npos; end = peer.incoming.find('\n')) {
    const std::string line = peer.incoming.substr(0, end);
    peer.incoming.erase(0, end + 1);
    take(peer, line);
  }
  return true;
}

void Watch::take(Peer& peer, std::string_view line) {
  const auto what = word_of(line);
  {
    const std::lock_guard lock(mutex_);
    peer.heard = Clock::now();
    peer.warned = false;
    if (what == "bye") peer.left = true;
    // What process 0 tells it has said: nobody else needs to, even of a failure that it found by itself as
    // well.
    if (what == "heard" || (what == "failed" && process_ != 0)) heard_ = true;
    if (what == "at") {
      const auto step = word_of(line);
      peer.waited = milliseconds(number_of(word_of(line)).value_or(0));
      move(peer, place_of(step, line), step != "0");
    }
  }
  if (what != "failed") return;
  if (process_ == 0) send(peer, "heard");
  report(failure_of(line));
}

void Watch::look_for_silence(Peer& peer) {
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    if (peer.socket < 0 || peer.left) return;
    const auto silence = Clock::now() - peer.heard;
    if (silence < options_.silent || peer.warned) {
      if (silence < deadline_.load()) return;
    } else {
      peer.warned = true;
      if (process_ != 0 && peer.place.empty()) return;  // it still waits for others to connect
      text = fmt::format("nothing has been heard for {:.0f} s of {}; it is given up after {:.0f} s",
                         base::seconds(silence), describe_locked(peer.process),
                         std::chrono::duration<double>(deadline_.load()).count());
    }
  }
  if (!text.empty()) {
    // Of a silent first process the lowest of the others says it.
    if (callbacks_.warn && (process_ == 0 || call_roll(process_, addresses_).lowest == process_))
      callbacks_.warn(text);
    return;
  }
  const double deadline_s = std::chrono::duration<double>(deadline_.load()).count();
  text = fmt::format("{} is lost: nothing has been heard of it for {:.0f} s", describe(peer.process),
                     deadline_s);
  {
    const std::lock_guard lock(mutex_);
    peer.left = true;  // said once
    std::vector<std::string> others;
    for (const auto& other : peers_)
      if (other.warned && !other.left) others.push_back(sentence_of(other));
    if (!others.empty()) text += fmt::format(", nor of {}", fmt::join(others, ", "));
  }
  lose(peer, std::move(text), deadline_s);
}

void Watch::look_for_who_holds_up() {
  std::vector<std::string> texts;
  {
    const std::lock_guard lock(mutex_);
    self_.waited = waited();
    const auto step = step_.load(std::memory_order_relaxed);
    if (const char* phase = phase_.load(std::memory_order_relaxed); phase != nullptr)
      move(self_, place_of(std::to_string(step), phase), step > 0);
    std::vector<Peer*> all{&self_};
    for (auto& peer : peers_) all.push_back(&peer);
    milliseconds longest{0};
    for (const Peer* one : all) longest = std::max(longest, one->waited);
    if (failure_ || longest < options_.held_up) return;
    const auto now = Clock::now();
    for (Peer* one : all) {
      // One that is silent is another matter, and before its first step everybody prepares for as long as it
      // takes.
      if (one->waited.count() > 0 || one->left || one->warned || !one->began) continue;
      if (now - one->moved < options_.held_up ||
          (one->said != base::TimePoint{} && now - one->said < options_.said_again))
        continue;
      one->said = now;
      texts.push_back(fmt::format("the others have waited {:.0f} s for {}; it is given up after {:.0f} s",
                                  base::seconds(longest), sentence_of(*one),
                                  std::chrono::duration<double>(deadline_.load()).count()));
    }
  }
  if (callbacks_.warn)
    for (const auto& text : texts) callbacks_.warn(text);
}

void Watch::lose_ended(std::vector<Peer*> ended) {
  const double silence_s = base::seconds_since(ended.front()->heard);
  const auto is_new = [&](const Peer& peer) {
    return peer.socket >= 0 && std::find(ended.begin(), ended.end(), &peer) == ended.end();
  };
  if (process_ == 0) std::this_thread::sleep_for(kForTheirNeighbours);
  for (auto& peer : peers_)
    while (is_new(peer) && wait_for(peer.socket, POLLIN, milliseconds(0)))
      if (!read_from(peer)) ended.push_back(&peer);
  std::sort(ended.begin(), ended.end());  // as they stand in peers_: by process
  std::vector<std::string> names;
  for (const Peer* peer : ended) names.push_back(describe(peer->process));
  const bool one = names.size() == 1;
  lose(*ended.front(),
       fmt::format("{} {} lost: {} ended without a word", fmt::join(names, ", "), one ? "is" : "are",
                   one ? "its process" : "their processes"),
       silence_s);
}

void Watch::lose(const Peer& peer, std::string text, double silence_s) {
  Failure failure{.kind = base::ErrorKind::comm, .text = std::move(text), .detection_s = silence_s};
  if (peer.process == 0) failure.speaker = speaker_without_first(failure.text);
  report(failure);
}

int Watch::speaker_without_first(std::string& text) const {
  auto called = call_roll(process_, addresses_);
  if (called.lowest == process_)
    for (const int other : missing_above(process_, addresses_)) called.missing.push_back(other);
  std::vector<std::string> missing;
  for (const int other : called.missing) {
    const auto who = callbacks_.ranks_of ? callbacks_.ranks_of(other) : fmt::format("process {}", other);
    missing.push_back(fmt::format("{} on host {}", who, addresses_[static_cast<std::size_t>(other)].host));
  }
  if (!missing.empty()) text += fmt::format("; no answer comes from {} either", fmt::join(missing, ", "));
  return called.lowest;
}

void Watch::report(const Failure& failure) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = failure;
  }
  if (process_ == 0) send_all(fmt::format("failed {}", line_of(failure)));
  if (callbacks_.on_failure) callbacks_.on_failure(failure);
}

void Watch::fail(const Failure& failure) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = failure;
    own_ = true;
  }
  send_all(fmt::format("failed {}", line_of(failure)));
}

std::optional<Failure> Watch::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

bool Watch::failure_is_own() const {
  const std::lock_guard lock(mutex_);
  return failure_ && own_;
}

bool Watch::wait_until_heard(milliseconds longest) {
  const auto until = Clock::now() + longest;
  while (process_ != 0) {
    {
      const std::lock_guard lock(mutex_);
      const bool gone = peers_.front().left || peers_.front().socket < 0;
      if (gone || Clock::now() > until) return heard_;
    }
    std::this_thread::sleep_for(milliseconds(5));
  }
  return true;
}

std::string Watch::describe(int process) const {
  const std::lock_guard lock(mutex_);
  return describe_locked(process);
}

std::string Watch::describe_locked(int process) const {
  for (const auto& peer : peers_)
    if (peer.process == process) return sentence_of(peer);
  return callbacks_.ranks_of ? callbacks_.ranks_of(process) : fmt::format("process {}", process);
}

std::string Watch::sentence_of(const Peer& peer) const {
  const auto who =
      callbacks_.ranks_of ? callbacks_.ranks_of(peer.process) : fmt::format("process {}", peer.process);
  return fmt::format("{} on host {} (last in {})", who, peer.host,
                     peer.place.empty() ? "the start" : peer.place);
}

void Watch::send(Peer& peer, const std::string& line) {
  const std::lock_guard lock(mutex_);
  if (peer.socket >= 0) write_line(peer.socket, line);
}

void Watch::send_all(const std::string& line) {
  const std::lock_guard lock(mutex_);
  for (const auto& peer : peers_)
    if (peer.socket >= 0) write_line(peer.socket, line);
}

}  // namespace paceline::comm

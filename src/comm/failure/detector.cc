#include "comm/failure/detector.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "comm/failure/probes.h"

// The lines, each ended by '\n':
//   hello TOKEN PROCESS HOST   the first one of a process (detector_connections.cc)
//   at WHEREABOUTS             a heartbeat (comm/failure/rank_status.h)
//   failed KIND MS TEXT        from a process to 0, from 0 to all; MS: time to detect a loss, or -
//   heard                      process 0 confirms the failure that the process sent
//   bye                        goodbye: the end of the connection is not a loss

namespace paceline::comm {
namespace {

using base::Clock;
using std::chrono::milliseconds;

/// If a host fails, all its processes end at once: after the end of one, waits this long for the ends of
/// others.
constexpr milliseconds kForTheirNeighbours{50};

/// Time between two checks for silent processes.
constexpr milliseconds kLook{250};

/// A first process that is idle while all others only follow it is not in a collective; it is given up after
/// this many deadlines.
constexpr int kDeadlinesOfTheFirst = 10;

}  // namespace

void FailureDetector::start(Callbacks callbacks) {
  callbacks_ = std::move(callbacks);
  if (process_ == 0) accept_all();
  reset_times();
  wake_ = Socket(::eventfd(0, EFD_CLOEXEC));
  if (!wake_.is_open())
    base::fail(base::ErrorKind::comm, "heartbeats: no eventfd could be made: {}", std::strerror(errno));
  thread_ = std::thread([this] { serve(); });
}

void FailureDetector::reset_times() {
  const std::lock_guard lock(mutex_);
  self_.seen.moved = Clock::now();
  for (auto& peer : peers_) peer.heard = peer.seen.moved = Clock::now();
}

void FailureDetector::beat() {
  const auto now = heartbeat_.now();
  {
    const std::lock_guard lock(mutex_);
    self_.seen.take(now, Clock::now());
  }
  send_all("at " + line_of(now));
}

void FailureDetector::serve() {
  auto next_beat = Clock::now(), next_look = next_beat;
  while (true) {
    std::vector<pollfd> waiting{{wake_.get(), POLLIN, 0}};
    {
      const std::lock_guard lock(mutex_);
      for (const auto& peer : peers_) waiting.push_back({peer.socket.get(), POLLIN, 0});  // poll() ignores -1
    }
    const auto next = std::min(next_beat, next_look);
    const auto left = std::chrono::duration_cast<milliseconds>(next - Clock::now());
    ::poll(waiting.data(), waiting.size(), std::max(0, static_cast<int>(left.count()) + 1));
    if (waiting[0].revents != 0) return;
    std::vector<Peer*> ended;
    for (std::size_t i = 0; i < peers_.size(); ++i)
      if (waiting[i + 1].revents != 0 && !read_from(peers_[i])) ended.push_back(&peers_[i]);
    if (!ended.empty()) lose_ended(ended);
    // This process was stopped, and most likely the others too, so their silence means nothing.
    if (Clock::now() - next > options_.silent) reset_times();
    if (Clock::now() >= next_beat) {
      next_beat = Clock::now() + options_.beat;
      beat();
    }
    if (Clock::now() < next_look) continue;
    next_look = Clock::now() + std::min(kLook, options_.beat);
    for (auto& peer : peers_) look_for_silence(peer);
    if (process_ == 0) look_for_who_holds_up();
  }
}

bool FailureDetector::read_from(Peer& peer) {
  char bytes[4096];
  const auto count = ::recv(peer.socket.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (count <= 0) {
    const std::lock_guard lock(mutex_);
    peer.socket.close();
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

void FailureDetector::take(Peer& peer, std::string_view line) {
  const auto what = word_of(line);
  {
    const std::lock_guard lock(mutex_);
    peer.heard = Clock::now();
    peer.warned = false;
    if (what == "bye") peer.left = true;
    // Process 0 has printed every failure that it sends, so this process need not, even if it found the
    // failure too.
    if (what == "heard" || (what == "failed" && process_ != 0)) heard_ = true;
    if (what == "failed" && process_ == 0) write_line(peer.socket.get(), "heard");
    if (auto where = what == "at" ? rank_status_of(line) : std::nullopt) {
      peer.seen.take(std::move(*where), peer.heard);
      peer.began = true;
    }
  }
  if (what == "failed") report(failure_of(line));
}

void FailureDetector::look_for_silence(Peer& peer) {
  // A shorter deadline applies only to collectives, since a heartbeat may be late without a loss.
  const milliseconds deadline = std::max(deadline_.load(), options_.silent);
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    if (!peer.socket.is_open() || peer.left) return;
    const auto silence = Clock::now() - peer.heard;
    if (silence < options_.silent || peer.warned) {
      if (silence < deadline) return;
    } else {
      peer.warned = true;
      if (process_ != 0 && !peer.began) return;  // it still waits for others to connect
      text = fmt::format("no heartbeat for {:.0f} s from {}; it counts as lost after {:.0f} s",
                         base::seconds(silence), describe_locked(peer.process), base::seconds(deadline));
    }
  }
  if (!text.empty()) {
    // If the first process is silent, the lowest other process warns.
    if (callbacks_.warn && (process_ == 0 || probe_survivors(process_, addresses_).lowest == process_))
      callbacks_.warn(text);
    return;
  }
  Failure failure;
  {
    const std::lock_guard lock(mutex_);
    failure = loss_by_silence(peer, deadline);
    peer.left = true;  // reported once
  }
  lose(peer, std::move(failure.text), base::seconds(deadline));
}

Failure FailureDetector::loss_by_silence(const Peer& peer, Clock::duration silence) const {
  std::vector<std::string> others;
  for (const auto& other : peers_)
    if (&other != &peer && other.warned && !other.left) others.push_back(sentence_of(other));
  const auto too = others.empty() ? ""
                                  : fmt::format(", nor {} {}", others.size() == 1 ? "has" : "have",
                                                fmt::join(others, ", "));
  return {.kind = base::ErrorKind::comm,
          .text = fmt::format("{} is lost: it has sent no heartbeat for {:.0f} s{}", sentence_of(peer),
                              base::seconds(silence), too),
          .detection_s = base::seconds(silence)};
}

std::optional<Failure> FailureDetector::silent_among(const std::vector<int>& processes) const {
  const std::lock_guard lock(mutex_);
  for (const int process : processes) {
    const auto* const peer = peer_of(process);
    if (peer != nullptr && peer->warned && !peer->left)
      return loss_by_silence(*peer, Clock::now() - peer->heard);
  }
  return std::nullopt;
}

void FailureDetector::look_for_who_holds_up() {
  std::vector<std::string> texts;
  std::optional<Failure> failure;
  const milliseconds deadline = deadline_.load();
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    std::vector<Peer*> all{&self_};
    std::vector<const WatchedProcess*> seen{&self_.seen};
    for (auto& peer : peers_) {
      peer.seen.is_out = peer.left || peer.warned;
      all.push_back(&peer);
      seen.push_back(&peer.seen);
    }
    const auto now = Clock::now();
    const auto held = who_holds_up(seen, options_.held_up, now);
    const auto is_to_be_said = [&](Peer& one) {
      if (one.said != base::TimePoint{} && now - one.said < options_.said_again) return false;
      one.said = now;
      return true;
    };
    if (held.is_standstill()) {
      std::vector<std::string> names;
      for (const auto process : held.by) names.push_back(sentence_of_late(*all[process]));
      const auto text = text_of_standstill(held.rested, names);
      if (held.rested >= deadline)
        failure = {.text = text + "; the run is given up", .detection_s = base::seconds(held.rested)};
      else if (is_to_be_said(*all[held.by.front()]))
        texts.push_back(text + text_of_giving_up(deadline));
    }
    const bool follow = held.rested.count() > 0 && !held.is_standstill();
    for (const auto process : held.is_standstill() ? std::vector<std::size_t>() : held.by) {
      Peer& one = *all[process];
      if (!is_to_be_said(one)) continue;
      texts.push_back(text_of_waiting(held.waited, sentence_of_late(one),
                                      follow ? kDeadlinesOfTheFirst * deadline : deadline));
    }
    if (follow && held.rested >= kDeadlinesOfTheFirst * deadline)
      failure = {
          .text = fmt::format(
              "{} is lost: it has done nothing for {:.0f} s, most likely in a read or write that hangs",
              sentence_of(self_), base::seconds(held.rested)),
          .detection_s = base::seconds(held.rested)};
  }
  if (callbacks_.warn)
    for (const auto& text : texts) callbacks_.warn(text);
  if (failure) report(*failure);
}

void FailureDetector::lose_ended(std::vector<Peer*> ended) {
  const double silence_s = base::seconds_since(ended.front()->heard);
  const auto is_new = [&](const Peer& peer) {
    return peer.socket.is_open() && std::find(ended.begin(), ended.end(), &peer) == ended.end();
  };
  if (process_ == 0) std::this_thread::sleep_for(kForTheirNeighbours);
  for (auto& peer : peers_)
    while (is_new(peer) && wait_for(peer.socket.get(), POLLIN, milliseconds(0)))
      if (!read_from(peer)) ended.push_back(&peer);
  std::sort(ended.begin(), ended.end());  // in the order of peers_, by process
  const auto names = base::texts_of(ended, [&](const Peer* peer) { return describe(peer->process); });
  const bool one = names.size() == 1;
  lose(*ended.front(),
       fmt::format("{} {} lost: {} ended without reporting an error", fmt::join(names, ", "),
                   one ? "is" : "are", one ? "its process" : "their processes"),
       silence_s);
}

void FailureDetector::lose(const Peer& peer, std::string text, double silence_s) {
  Failure failure{.kind = base::ErrorKind::comm, .text = std::move(text), .detection_s = silence_s};
  if (peer.process == 0) failure.reporter = reporter_without_first(failure.text);
  report(failure);
}

int FailureDetector::reporter_without_first(std::string& text) const {
  auto called = probe_survivors(process_, addresses_);
  if (called.lowest == process_)
    for (const int other : missing_above(process_, addresses_)) called.missing.push_back(other);
  std::vector<std::string> missing;
  for (const int other : called.missing) {
    const auto who = callbacks_.ranks_of ? callbacks_.ranks_of(other) : fmt::format("process {}", other);
    missing.push_back(fmt::format("{} on host {}", who, addresses_[static_cast<std::size_t>(other)].host));
  }
  if (!missing.empty()) text += fmt::format("; {} did not answer either", fmt::join(missing, ", "));
  return called.lowest;
}

void FailureDetector::report(const Failure& failure) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = failure;
  }
  if (process_ == 0) send_all(fmt::format("failed {}", line_of(failure)));
  if (callbacks_.on_failure) callbacks_.on_failure(failure);
}

void FailureDetector::fail(const Failure& failure) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = failure;
    own_ = true;
  }
  send_all(fmt::format("failed {}", line_of(failure)));
}

std::optional<Failure> FailureDetector::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

bool FailureDetector::failure_is_own() const {
  const std::lock_guard lock(mutex_);
  return failure_ && own_;
}

bool FailureDetector::wait_until_heard(milliseconds longest) {
  const auto until = Clock::now() + longest;
  while (process_ != 0) {
    {
      const std::lock_guard lock(mutex_);
      const bool gone = peers_.front().left || !peers_.front().socket.is_open();
      if (gone || Clock::now() > until) return heard_;
    }
    std::this_thread::sleep_for(milliseconds(5));
  }
  return true;
}

std::string FailureDetector::describe(int process) const {
  const std::lock_guard lock(mutex_);
  return describe_locked(process);
}

std::string FailureDetector::describe_late(int process) const {
  const std::lock_guard lock(mutex_);
  const auto* const peer = peer_of(process);
  return peer == nullptr ? describe_locked(process) : sentence_of_late(*peer);
}

const FailureDetector::Peer* FailureDetector::peer_of(int process) const {
  const auto at =
      std::find_if(peers_.begin(), peers_.end(), [&](const Peer& peer) { return peer.process == process; });
  return at == peers_.end() ? nullptr : &*at;
}

std::string FailureDetector::describe_locked(int process) const {
  if (const auto* const peer = peer_of(process)) return sentence_of(*peer);
  return callbacks_.ranks_of ? callbacks_.ranks_of(process) : fmt::format("process {}", process);
}

std::string FailureDetector::sentence_of(const Peer& peer) const {
  const auto who =
      callbacks_.ranks_of ? callbacks_.ranks_of(peer.process) : fmt::format("process {}", peer.process);
  return fmt::format("{} on host {} (last in {})", who, peer.host, place_of(peer.seen.at));
}

std::string FailureDetector::sentence_of_late(const Peer& peer) const {
  const auto& at = peer.seen.at;
  if (at.rank < 0) return sentence_of(peer);
  return fmt::format("rank {} on host {} (last in {})", at.rank, peer.host, place_of(at));
}

void FailureDetector::send_all(const std::string& line) {
  const std::lock_guard lock(mutex_);
  for (const auto& peer : peers_)
    if (peer.socket.is_open()) write_line(peer.socket.get(), line);
}

}  // namespace paceline::comm

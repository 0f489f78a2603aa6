#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "comm/failure/detector.h"
#include "comm/line_socket.h"

// Opens and closes the connections of the failure detector.

namespace paceline::comm {
namespace {

using base::Clock;
using std::chrono::milliseconds;

/// How long process 0 continues to read after its goodbye.
constexpr milliseconds kForTheEnds{500};

constexpr milliseconds kToConnect{3000};

constexpr milliseconds kLookForThem{100};

}  // namespace

FailureDetector::FailureDetector(int processes, DetectorOptions options)
    : process_(0), options_(options), deadline_(options.deadline) {
  addresses_.push_back(listen_anywhere(listener_, options_.interface, options_.is_on_this_host));
  self_.host = base::host_name();
  for (int process = 1; process < processes; ++process) peers_.push_back({.process = process});
}

FailureDetector::FailureDetector(int process, std::vector<Address> addresses, DetectorOptions options)
    : process_(process), options_(options), deadline_(options.deadline), addresses_(std::move(addresses)) {
  const auto host = base::host_name();
  const Address& address = addresses_.front();
  Socket socket(connect_to(address, kToConnect));
  if (!socket.is_open())
    base::fail(base::ErrorKind::comm,
               "heartbeats: process {} on {} cannot reach process 0 on {} (port {}); is a firewall between "
               "them?",
               process, host, address.host, address.port);
  write_line(socket.get(), fmt::format("hello {} {} {}", address.token, process, host));
  peers_.push_back({.process = 0, .socket = std::move(socket), .host = address.host});
}

FailureDetector::~FailureDetector() {
  if (thread_.joinable()) {
    ::eventfd_write(wake_.get(), 1);
    thread_.join();
  }
  send_all("bye");
  if (process_ == 0) read_to_the_ends();
}

void FailureDetector::read_to_the_ends() {
  for (const auto& peer : peers_)
    if (peer.socket.is_open()) ::shutdown(peer.socket.get(), SHUT_WR);
  const auto until = Clock::now() + kForTheEnds;
  for (const auto& peer : peers_) {
    if (!peer.socket.is_open()) continue;
    char bytes[4096];
    ssize_t count = 1;
    while (count > 0) {
      const auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now());
      if (left.count() <= 0 || !wait_for(peer.socket.get(), POLLIN, left)) break;
      count = ::recv(peer.socket.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    }
  }
}

void FailureDetector::accept_all() {
  const auto until = Clock::now() + options_.connecting;
  FirstLines guests(listener_.get(), {});
  for (std::size_t connected = 0; connected < peers_.size();) {
    const auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now());
    // Waits in short intervals, since other processes recognise a waiting process by its occasional activity
    // (comm/failure/probes.h).
    const auto guest = left.count() > 0 ? guests.next(std::min(left, kLookForThem)) : std::nullopt;
    if (!guest && left.count() > 0) continue;
    if (!guest) {
      std::string missing;
      for (const auto& peer : peers_)
        if (!peer.socket.is_open()) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", peer.process);
      base::fail(base::ErrorKind::comm,
                 "heartbeats: process {} did not reach process 0 on {} (port {}) within {} s; is a firewall "
                 "between them?",
                 missing, address().host, address().port, options_.connecting.count() / 1000);
    }
    Socket socket(guest->socket);
    std::string_view words = guest->line;
    const bool ours = word_of(words) == "hello" && number_of(word_of(words)) == address().token;
    const auto process = ours ? number_of(word_of(words)) : std::nullopt;
    if (!process || *process < 1 || *process > peers_.size()) continue;
    Peer& peer = peers_[static_cast<std::size_t>(*process) - 1];
    if (peer.socket.is_open()) continue;
    peer.host = words;
    peer.socket = std::move(socket);
    ++connected;
  }
  listener_.close();  // nobody else is expected
}

}  // namespace paceline::comm

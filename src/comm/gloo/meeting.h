#pragma once

/// Lets processes without a common launcher meet: all connect to process 0 at MASTER_ADDR:MASTER_PORT
/// (meeting_server.h) and use its key-value store as gloo's.
///
/// Threads  one at a time

#include <gloo/rendezvous/store.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "comm/gloo/meeting_server.h"

namespace paceline::comm::gloo {

class Meeting final : public ::gloo::rendezvous::Store {
 public:
  /// Connects, and retries until launch.meet_within has passed, since process 0 may start later, or have too
  /// many connections at the moment. Of several ports, each try visits all and skips those where somebody
  /// else answers. After ten seconds without process 0 it says so, once.
  ///
  /// Errors   Error(comm): nobody is there; another process has this one's number; or (with one port)
  ///          somebody else is there, or another run, or process 0 with another secret
  /// Lifetime `launch` and `say` outlive it
  Meeting(const Launch& launch, const Say& say);

  void set(const std::string& key, const std::vector<char>& data) override;
  std::vector<char> get(const std::string& key) override;
  void wait(const std::vector<std::string>& keys) override;
  /// Process 0 waits ten seconds for a process's key, then says which process is missing.
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& longest) override;

  /// This host's address on its connection to process 0, at which others can reach this process.
  [[nodiscard]] std::string own_address() const;

 private:
  std::string ask(const std::string& key, std::chrono::milliseconds longest);
  [[nodiscard]] bool try_port(std::uint16_t port, std::chrono::milliseconds patience);
  /// "" once process 0 has let this process in, else why this port is not the one.
  [[nodiscard]] std::string greet(std::chrono::milliseconds patience);
  /// A line of the greeting; nothing: the connection was closed before its end.
  [[nodiscard]] std::optional<std::string> receive_line(std::chrono::steady_clock::time_point until);
  void send(const std::string& bytes);
  std::string receive(std::size_t bytes, std::chrono::steady_clock::time_point until,
                      const std::string& what);

  const Launch& launch_;
  const Say& say_;
  std::string place_;    ///< for messages: "a:29500"
  std::string why_not_;  ///< why the last port that answered was not process 0's
  base::Descriptor socket_;
};

}  // namespace paceline::comm::gloo

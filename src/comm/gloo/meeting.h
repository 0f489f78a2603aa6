#pragma once

/// Lets processes without a common launcher meet: process 0 listens at MASTER_ADDR:MASTER_PORT and keeps a
/// key-value store (gloo's Store), in which all processes write and read.
///
/// Threads  the client: one at a time; the server has its own thread

#include <gloo/rendezvous/store.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace paceline::comm::gloo {

/// Where the processes meet, and how they recognise one another; see comm::Launch.
struct MeetingPlace {
  std::string host;
  std::uint16_t port = 0;  ///< the first of `ports`
  int ports = 1;
  int process = 0;  ///< this process
  int processes = 1;
  std::string job;  ///< identifies processes of this run; "": only their number does
  std::function<void(const std::string&)> say;  ///< reports what takes long; empty: nobody hears it
};

/// The server in process 0. It lives until all have met.
class MeetingServer {
 public:
  /// Listens at the first free port of `place`.
  ///
  /// Errors   Error(comm): no port is free
  explicit MeetingServer(const MeetingPlace& place);
  ~MeetingServer();
  MeetingServer(const MeetingServer&) = delete;
  MeetingServer& operator=(const MeetingServer&) = delete;

 private:
  struct Guest {
    int socket = -1;
    std::string incoming;
    std::string wants;  ///< a key that nobody has written yet; empty: none
    bool greeted = false;
  };
  void serve();
  bool read_from(Guest& guest);
  bool take(Guest& guest);
  void answer(Guest& guest);

  const std::string greeting_;
  int listener_ = -1;
  int wake_[2] = {-1, -1};
  std::vector<Guest> guests_;
  std::map<std::string, std::string> kept_;
  std::thread thread_;  ///< last: it uses all of the above
};

class Meeting final : public ::gloo::rendezvous::Store {
 public:
  /// Connects, and retries until `longest` has passed, since process 0 may start later. Of several ports,
  /// each try visits all and skips those where somebody else answers. After ten seconds without process 0 it
  /// says so, once.
  ///
  /// Errors   Error(comm): nobody is there, or (with one port) somebody else
  Meeting(const MeetingPlace& place, std::chrono::milliseconds longest);
  ~Meeting() override;
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  void set(const std::string& key, const std::vector<char>& data) override;
  std::vector<char> get(const std::string& key) override;
  void wait(const std::vector<std::string>& keys) override;
  /// Process 0 waits ten seconds for a process's key, then says which process is missing.
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& longest) override;

  /// This host's address on its connection to process 0, at which others can reach this process.
  [[nodiscard]] std::string own_address() const;

 private:
  std::string ask(const std::string& key, std::chrono::milliseconds longest);
  [[nodiscard]] bool try_port(const MeetingPlace& place, int number, std::chrono::milliseconds patience);
  void send(const std::string& bytes);
  std::string receive(std::size_t bytes, std::chrono::steady_clock::time_point until,
                      const std::string& what);

  std::string place_;  ///< for messages: "a:29500"
  const int process_;
  const std::function<void(const std::string&)> say_;
  const std::chrono::milliseconds longest_;
  int socket_ = -1;
};

}  // namespace paceline::comm::gloo

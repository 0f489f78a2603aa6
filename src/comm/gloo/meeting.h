#pragma once

/// Where processes that nobody introduced find one another: process 0 listens at MASTER_ADDR:MASTER_PORT and
/// keeps what each has to say under a name; the others write and read there. gloo calls that a store.
///
/// Threads  the client one at a time; the server has a thread of its own

#include <gloo/rendezvous/store.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace paceline::comm::gloo {

/// Where processes meet, and which: as comm::Launch says it.
struct MeetingPlace {
  std::string host;
  std::uint16_t port = 0;  ///< the first of `ports`
  int ports = 1;
  int processes = 1;
  std::string job;  ///< strangers are told by it; "": by the number of processes alone
};

/// Process 0's end. Lives until all have met.
class MeetingServer {
 public:
  /// Listens at the first port of `place` that is free. Errors   Error(comm): none is
  explicit MeetingServer(const MeetingPlace& place);
  ~MeetingServer();
  MeetingServer(const MeetingServer&) = delete;
  MeetingServer& operator=(const MeetingServer&) = delete;

 private:
  struct Guest {
    int socket = -1;
    std::string incoming;
    std::string wants;  ///< a name that nobody has written yet; empty: waits for nothing
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
  /// Connects, again and again until `longest` has passed: process 0 may start later. Of several ports all
  /// are tried each time, and those where somebody else answers are passed over.
  /// Errors   Error(comm): nobody is there; of one port, somebody else
  Meeting(const MeetingPlace& place, std::chrono::milliseconds longest);
  ~Meeting() override;
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  void set(const std::string& key, const std::vector<char>& data) override;
  std::vector<char> get(const std::string& key) override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& longest) override;

  /// The address of this host from which process 0 was reached: where others reach this one.
  [[nodiscard]] std::string own_address() const;

 private:
  std::string ask(const std::string& key, std::chrono::milliseconds longest);
  [[nodiscard]] bool try_port(const MeetingPlace& place, int number, std::chrono::milliseconds patience);
  void send(const std::string& bytes);
  std::string receive(std::size_t bytes, std::chrono::steady_clock::time_point until,
                      const std::string& what);

  std::string place_;  ///< for sentences: "a:29500"
  const std::chrono::milliseconds longest_;
  int socket_ = -1;
};

}  // namespace paceline::comm::gloo

#pragma once

/// The server side of a meeting: process 0 listens at MASTER_ADDR:MASTER_PORT and keeps the keys and values
/// that the processes exchange. The client is in meeting.h.
///
/// The port may be reached by strangers. So all connections are greeted at once, each has little time and few
/// bytes before it is known as a process of the run, sends never block, and the listener closes as soon as
/// every process has given its value.

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "comm/launch.h"

namespace paceline::comm::gloo {

/// Reports what takes long, or who was turned away; empty: nobody hears it.
using Say = std::function<void(const std::string&)>;

// The greeting, in lines. A guest is a process that connects, process 0 among them.
//   guest   paceline-meeting-2 WORLD_SIZE RANK secret|open NONCE JOB   JOB as digits of a hash
//   server  paceline-meeting-2 NONCE PROOF                             it knows the secret too
//   guest   PROOF
//   server  welcome
// Instead of its lines the server may send
//   elsewhere REASON     this is not the guest's run; with several ports, it may be at another one
//   refused REASON       it is, but the guest cannot take part
// Then requests follow; lengths are 4 bytes, little-endian:
//   's' LENGTH name LENGTH value      keep it
//   'g' LENGTH name                   answered by LENGTH value, once it was written

inline constexpr std::string_view kMeeting = "paceline-meeting-2", kWelcome = "welcome",
                                  kElsewhere = "elsewhere ", kRefused = "refused ";
/// Characters of a line of the greeting, at most.
inline constexpr std::size_t kLongestGreeting = 512;

/// 32 hexadecimal digits that nobody can guess; "" if the system has no random numbers.
[[nodiscard]] std::string make_nonce();
/// An address as text; one of IPv4 as such, even of a socket of IPv6.
[[nodiscard]] std::string as_text(const sockaddr_storage& address, socklen_t size);
[[nodiscard]] std::string ports_of(const Launch& launch);  ///< "29500", "29501 to 29508"
[[nodiscard]] std::vector<std::string> words_of(const std::string& line);
/// The first line of a guest.
[[nodiscard]] std::string hello_of(const Launch& launch, const std::string& nonce);
/// HMAC-SHA-256 of both nonces (`hello` has the guest's) with the secret as its key, as hexadecimal digits;
/// `who` is "guest" or "server", so that neither can send back what it has received.
[[nodiscard]] std::string proof_of(const std::string& secret, std::string_view who, const std::string& hello,
                                   const std::string& nonce);
/// Whether two proofs are equal, in a time that does not depend on where they differ.
[[nodiscard]] bool is_same_proof(std::string_view a, std::string_view b);

[[nodiscard]] std::string length_of(std::size_t size);  ///< as 4 bytes
[[nodiscard]] std::size_t read_length(std::string_view bytes);
/// Bytes of a value at most. gloo's has up to 192 for each process.
[[nodiscard]] std::size_t longest_value(int processes);

struct MeetingLimits {
  std::chrono::milliseconds to_greet{5000};  ///< a connection that is not a process by then is closed
  std::size_t strangers = 64;  ///< connections that are not known yet; the oldest makes room for a new one
  std::size_t key_bytes = 64, keys_each = 8;  ///< of a process
};

/// The server in process 0. Its thread ends when all have met and left.
class MeetingServer {
 public:
  /// Listens at the first free meeting port of `launch`.
  ///
  /// Errors   Error(comm): no port is free
  explicit MeetingServer(Launch launch, Say say = {}, const MeetingLimits& limits = {});
  ~MeetingServer();
  MeetingServer(const MeetingServer&) = delete;
  MeetingServer& operator=(const MeetingServer&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  enum class Stage { hello, proof, in };
  struct Guest {
    base::Descriptor socket;
    std::string from;                               ///< its address
    std::chrono::steady_clock::time_point until{};  ///< by when it must be in
    Stage stage = Stage::hello;
    int process = -1;
    std::string hello, nonce;
    std::string incoming, outgoing;
    std::string wants;    ///< a key that nobody has written yet; empty: none
    bool leaves = false;  ///< closed when `outgoing` is sent
  };
  struct Kept {
    std::string value;
    int by = -1;
  };
  void serve();
  void accept_some();
  void make_room();
  bool is_served(Guest& guest);
  bool take_all(Guest& guest);
  void take_hello(Guest& guest, const std::string& line);
  void take_proof(Guest& guest, const std::string& line);
  bool take_request(Guest& guest);
  void turn_away(Guest& guest, std::string_view how, const std::string& why);
  void answer(Guest& guest);
  [[nodiscard]] bool have_all_given() const;
  void say_once(bool& said, const std::string& text) const;

  const Launch launch_;
  const Say say_;
  const MeetingLimits limits_;
  std::uint16_t port_ = 0;
  base::Descriptor listener_;
  base::Descriptor wake_;  ///< an eventfd, which ends the thread
  std::vector<Guest> guests_;
  std::map<std::string, Kept> kept_;
  bool said_double_ = false, said_secret_ = false;
  std::thread thread_;  ///< last: it uses all of the above
};

}  // namespace paceline::comm::gloo

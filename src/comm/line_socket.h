#pragma once

/// Lines of text over TCP: what the failure detector's connections are made of. IPv4 sockets that do not
/// block.
///
/// Threads  any

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/host_name.h"

namespace paceline::comm {

/// Where a process is to be found: what all tell one another before anything else.
struct Address {
  std::uint64_t token = 0;  ///< so that nobody else is taken for a process of this run
  std::uint16_t port = 0;
  char host[base::kHostNameBytes] = {};
  std::uint32_t ipv4[8] = {};  ///< of its interfaces, network order; 0: none
};

/// As one line of words, and read again: nothing where it is none.
[[nodiscard]] std::string text_of(const Address& address);
[[nodiscard]] std::optional<Address> address_of(std::string_view text);

/// A descriptor that closes itself.
class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  [[nodiscard]] int get() const { return descriptor_; }
  [[nodiscard]] int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

/// A socket that listens at a free port of every interface, and where it is found: at the addresses of
/// `interface` alone, where one is named.
/// Errors   Error(comm): no port could be opened
[[nodiscard]] Address listen_anywhere(int& listener, const std::string& interface = "");

/// A connection to the first of `address` that answers, each within `longest`; -1: none does.
[[nodiscard]] int connect_to(const Address& address, std::chrono::milliseconds longest);

/// Whether poll() finds `event` within `longest`.
[[nodiscard]] bool wait_for(int socket, short event, std::chrono::milliseconds longest);

/// Sends all of `text` and an end of line; a few hundred bytes always fit a connection's buffer unless the
/// other side is stuck, and then they are dropped.
void write_line(int socket, std::string text);

/// A line of fewer than `most` letters that comes within `longest`, or nothing. For a greeting: byte by byte,
/// so nothing behind it is lost.
[[nodiscard]] std::optional<std::string> read_line(int socket, std::chrono::milliseconds longest,
                                                   std::size_t most = 200);

/// The first word of `line`, which is cut off it.
[[nodiscard]] std::string_view word_of(std::string_view& line);
[[nodiscard]] std::optional<std::uint64_t> number_of(std::string_view text);

}  // namespace paceline::comm

#pragma once

/// Sends and receives lines of text over non-blocking IPv4 sockets, for the connections of the failure
/// detector.
///
/// Threads  any

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "base/text.h"

namespace paceline::comm {

/// The address, as text, at which other processes can reach this process over the interface `name`: its first
/// IPv4 address, else its first IPv6 address that is not link-local.
///
/// Errors   Error(comm) naming the host and its usable interfaces: there is no such interface, it has no such
///          address, or it is down
[[nodiscard]] std::string address_of_interface(const std::string& name);

/// The IPv4 addresses of `interface` in network byte order; "": of all interfaces except the loopback. Empty
/// if there are none.
[[nodiscard]] std::vector<std::uint32_t> ipv4_addresses(const std::string& interface);

/// Where a process can be reached. All processes exchange these first.
struct Address {
  std::uint64_t token = 0;  ///< identifies processes of this run
  std::uint16_t port = 0;
  char host[base::kHostNameBytes] = {};
  std::uint32_t ipv4[8] = {};  ///< of its interfaces, in network order; 0: none
};

/// An address as one line of words, and parsed again; nothing if the line is none.
[[nodiscard]] std::string text_of(const Address& address);
[[nodiscard]] std::optional<Address> address_of(std::string_view text);

using Socket = base::Descriptor;

/// Opens a socket that listens at a free port, of the loopback alone or of every interface. Returns its
/// address, which names `interface` alone if that is not empty.
///
/// Errors   Error(comm): no port could be opened
[[nodiscard]] Address listen_anywhere(Socket& listener, const std::string& interface = "",
                                      bool is_on_this_host = false);

/// Accepts connections and reads the first line of each, of all of them at once, so that silent strangers
/// delay nobody. Nothing after the line is read.
///
/// Threads  one
class FirstLines {
 public:
  struct Limits {
    std::chrono::milliseconds patience{2000};  ///< for the line of a connection
    std::size_t waiting = 64;                  ///< connections; then the oldest makes room for a new one
    std::size_t line = 200;                    ///< characters
  };
  struct Arrival {
    int socket = -1;  ///< the caller's to close; non-blocking
    std::string line;
  };
  FirstLines(int listener, Limits limits) : listener_(listener), limits_(limits) {}

  /// The next connection with a first line; nothing once `longest` has passed or `wake`, a descriptor, can be
  /// read (-1: none).
  [[nodiscard]] std::optional<Arrival> next(std::chrono::milliseconds longest, int wake = -1);

 private:
  struct Waiting {
    Socket socket;
    std::string text;
    std::chrono::steady_clock::time_point until{};
  };
  enum class Read { more, line, stranger };
  Read read_from(Waiting& one) const;
  void accept_some();
  void leave(std::size_t index);

  const int listener_;
  const Limits limits_;
  std::vector<Waiting> waiting_;  ///< the oldest first
};

/// Listens at a port of its own until it is destroyed: a thread passes on the first line of each connection.
class LineListener {
 public:
  /// May answer by `socket`, which is closed when it returns.
  using Take = std::function<void(const Address& own, std::string_view line, int socket)>;
  /// The first two as of listen_anywhere().
  ///
  /// Errors   Error(comm): no port could be opened
  LineListener(const std::string& interface, bool is_on_this_host, FirstLines::Limits limits, Take take);
  ~LineListener();
  LineListener(const LineListener&) = delete;
  LineListener& operator=(const LineListener&) = delete;
  [[nodiscard]] const Address& address() const { return address_; }

 private:
  Socket listener_;
  Address address_;
  Socket wake_;         ///< an eventfd, which ends the thread
  std::thread thread_;  ///< last: it uses all of the above
};

/// Connects to the first of `address` that answers, waiting up to `longest` for each; -1: none does.
[[nodiscard]] int connect_to(const Address& address, std::chrono::milliseconds longest);

/// Whether `event` (as for poll()) occurs within `longest`.
[[nodiscard]] bool wait_for(int socket, short event, std::chrono::milliseconds longest);

/// Sends `text` and an end of line without blocking. A few hundred bytes fit a connection's buffer; if the
/// other side is stuck they are dropped.
void write_line(int socket, std::string text);

/// Reads a line of fewer than `most` characters within `longest`, or nothing. It reads byte by byte, for
/// greetings, so that nothing after the line is lost.
[[nodiscard]] std::optional<std::string> read_line(int socket, std::chrono::milliseconds longest,
                                                   std::size_t most = 200);

/// Removes the first word from `line` and returns it.
[[nodiscard]] std::string_view word_of(std::string_view& line);
[[nodiscard]] inline std::optional<std::uint64_t> number_of(std::string_view text) {
  return base::to_number<std::uint64_t>(text);
}

}  // namespace paceline::comm

#pragma once

/// Prints messages about a run in progress for the user who started it, from any process.
///
/// From the moment that one process has died until it has ended all others, mpirun holds back the processes'
/// output: for five seconds and more, the time that launch gives them to write their record. So launch
/// listens on a socket, and processes send their messages there, from any host.

#include <string>
#include <string_view>

#include "comm/line_socket.h"

namespace paceline::cluster {

/// The variable with launch's address for the processes.
inline constexpr const char* kEar = "PACELINE_EAR";

/// Prints "paceline: TEXT" on the standard error of the launch that started this process, or else of this
/// process.
///
/// Cost     without a launch: a line of output, for which a reader that does not read is given half a
///          second; then a process of its own writes it later. With one that does not answer: at most half a
///          second, plus 0.2 s for each of its addresses that does not respond
/// Threads  any
void log_line(const std::string& text);

/// Prints "paceline: TEXT" on the standard error of this process. Waits at most half a second for a reader
/// that does not read. Returns what of the line was not written.
///
/// Threads  any
std::string print_line(std::string_view text);

/// For launch: prints the messages of its processes until it is destroyed.
class Ear {
 public:
  /// `interface`: the network interface to name; "": any. `is_on_this_host`: all processes are on this host,
  /// so no other can connect.
  ///
  /// Errors   Error(comm): no port could be opened
  explicit Ear(const std::string& interface = "", bool is_on_this_host = false);
  /// The value for kEar.
  [[nodiscard]] std::string address() const { return comm::text_of(listener_.address()); }

 private:
  const comm::LineListener listener_;
};

}  // namespace paceline::cluster

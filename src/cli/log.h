#pragma once

/// What is said about a run while it goes on, for the person who started it.
///
/// mpirun holds back what processes write from the moment that one of them has died until it has ended all
/// others: for the time that launch lets them have to write their record, five seconds and more. So launch
/// listens itself, and what is to be said goes to it, from any host.

#include <string>
#include <thread>

#include "comm/line_socket.h"

namespace paceline::cli {

/// The variable that tells processes where their launch listens.
inline constexpr const char* kEar = "PACELINE_EAR";

/// Prints "paceline: TEXT" on the standard error of the launch that started this process, or else on that of
/// this process.
///
/// Cost     without a launch one line written; half a second at most where a launch does not answer, and
///          0.2 s for each of its addresses that swallows what is sent
/// Threads  any
void log_line(const std::string& text);

/// For launch: prints what its processes say, until it is destroyed.
class Ear {
 public:
  /// `interface`: of the network, over which it is spoken to; "": any.
  /// Errors   Error(comm): no port could be opened
  explicit Ear(const std::string& interface = "");
  ~Ear();
  Ear(const Ear&) = delete;
  Ear& operator=(const Ear&) = delete;
  /// What kEar is to be set to.
  [[nodiscard]] std::string address() const { return comm::text_of(address_); }

 private:
  void listen();

  int listener_ = -1;
  comm::Address address_;
  int wake_[2] = {-1, -1};  ///< a byte in it ends the thread
  std::thread thread_;      ///< last: it uses all of the above
};

}  // namespace paceline::cli

#pragma once

/// Who of the others is still there once process 0, which else knows, is not.
///
/// Every process but the first listens at a port of its own and answers whoever asks; nothing is sent while
/// all goes well. When process 0 is lost, each asks those below itself, the lowest first: who gets an answer
/// leaves it to that one to speak; who gets none is the lowest that is left, and knows all that are gone.

#include <chrono>
#include <span>
#include <thread>
#include <vector>

#include "comm/line_socket.h"

namespace paceline::comm {

/// Answers "are you there?" until it is destroyed, whatever the other threads of the process do.
class SurvivorProbe {
 public:
  /// Errors   Error(comm): no port could be opened
  /// `interface`: of the network, over which it is asked; "": any.
  explicit SurvivorProbe(const std::string& interface = "");
  ~SurvivorProbe();
  SurvivorProbe(const SurvivorProbe&) = delete;
  SurvivorProbe& operator=(const SurvivorProbe&) = delete;
  [[nodiscard]] const Address& address() const { return address_; }

 private:
  void answer_all();

  int listener_ = -1;
  Address address_;
  int wake_[2] = {-1, -1};  ///< a byte in it ends the thread
  std::thread thread_;      ///< last: it uses all of the above
};

/// What a process heard that asked those below itself.
struct Called {
  int lowest = 0;            ///< of those that are there, the asking process included
  std::vector<int> missing;  ///< below that, from 1: gave no answer
};

/// Asks processes 1, 2, ... below `process` until one answers; `addresses` [process].
///
/// Cost     microseconds where process 1 answers; at most 0.5 s for each of a process's addresses that
///          swallows the question, and a host of which one has done so is not asked again
[[nodiscard]] Called probe_survivors(int process, std::span<const Address> addresses);

/// For the lowest that is there: those above it that give no answer. Of processes that are dealt out to the
/// hosts in turn a host that goes takes some of these too.
///
/// Cost     a connection to each, and as above; after 1 s no more are asked, nor named
[[nodiscard]] std::vector<int> missing_above(int process, std::span<const Address> addresses);

}  // namespace paceline::comm

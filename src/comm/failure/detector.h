#pragma once

/// Who is still there: a line of its own between process 0 and every other one, beside the messages of the
/// collectives, which say nothing about a process that sends none.
///
/// A TCP connection a process, held by a thread that sends a heartbeat twice a second: the step and the phase
/// in which the process's first rank is, and for how long it has waited in a collective
/// (comm/failure/heartbeat.h). A process that dies is noticed at once (its connection ends without a
/// farewell), one that was stopped when its heartbeats fail to come, one that hangs by what others tell of
/// their waiting (comm/failure/rank_status.h). Process 0 finds out, tells all others, and says it.
///
/// Threads  any
/// Lifetime made by all processes together; destroying it says farewell

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "comm/failure/failure.h"
#include "comm/failure/heartbeat.h"
#include "comm/failure/rank_status.h"
#include "comm/line_socket.h"

namespace paceline::comm {

struct DetectorOptions {
  std::chrono::milliseconds beat{500};
  std::chrono::milliseconds silent{3500};   ///< without a heartbeat: said, within 5 s on a busy machine too
  std::chrono::milliseconds held_up{3000};  ///< others wait so long for one that stays where it is: said
  std::chrono::milliseconds said_again{60000};
  std::chrono::milliseconds deadline{60000};  ///< without a heartbeat: lost
  std::chrono::milliseconds connecting{20000};
  std::string interface = {};  ///< of the network, over which processes connect; "": any
};

class FailureDetector {
 public:
  /// Process 0 first makes its end and gives `address()` to the others; they are made with `addresses`
  /// [process]: that one, and those of the others' SurvivorProbes.
  FailureDetector(int processes, DetectorOptions options);  ///< process 0
  FailureDetector(int process, std::vector<Address> addresses,
                  DetectorOptions options);  ///< the others: connects
  ~FailureDetector();
  FailureDetector(const FailureDetector&) = delete;
  FailureDetector& operator=(const FailureDetector&) = delete;

  [[nodiscard]] const Address& address() const { return addresses_.front(); }
  /// `ranks_of(process)`: how a process is called in sentences, "rank 3" or "ranks 6 to 7". `on_failure` is
  /// called once, from the detector's thread, with a failure of another process; `warn` with what is worth
  /// saying (process 0). Process 0 waits here until all others are connected. Errors   Error(comm) naming who
  /// did not come
  struct Callbacks {
    std::function<std::string(int process)> ranks_of;
    std::function<void(const Failure&)> on_failure;
    std::function<void(const std::string&)> warn;
  };
  void start(Callbacks callbacks);

  /// Instead of the options' own: from now on a process that is silent so long is lost.
  void set_deadline(std::chrono::milliseconds deadline) { deadline_ = deadline; }
  /// What the next heartbeats carry.
  [[nodiscard]] Heartbeat& heartbeat() { return heartbeat_; }
  /// This process has failed: tells the others.
  void fail(const Failure& failure);
  /// For a process that has lost process 0: who says it, as a roll call shows; `text` is made to name who
  /// else does not answer. Cost   that of probe_survivors()
  [[nodiscard]] int speaker_without_first(std::string& text) const;
  /// The first failure that this process knows of, its own or another's; and which of the two.
  [[nodiscard]] std::optional<Failure> failure() const;
  [[nodiscard]] bool failure_is_own() const;
  /// "rank 3 on host b (last in backward of step 97)"
  [[nodiscard]] std::string describe(int process) const;
  /// The same of one that others wait for: of several ranks the one that keeps its own process waiting too.
  [[nodiscard]] std::string describe_late(int process) const;
  /// For a process that failed: waits until process 0 has left (it may have a record to write, and launchers
  /// end all processes when one of them ends with an error), at most `longest`. True when it has taken note
  /// before.
  bool wait_until_heard(std::chrono::milliseconds longest);

 private:
  struct Peer {
    int process = 0;
    int socket = -1;
    std::string host;
    std::string incoming;  ///< the begin of a line
    WatchedProcess seen;
    base::TimePoint heard{};
    bool began = false;      ///< its heartbeats
    bool left = false;       ///< said farewell
    bool warned = false;     ///< that nothing is heard of it
    base::TimePoint said{};  ///< that it holds up the others
  };

  void accept_all();
  /// Process 0, after its farewell: closing a connection with something unread in it would take back what the
  /// other side has not read yet.
  void read_to_the_ends();
  void begin_anew();  ///< all have been heard, and have moved, just now
  void serve();
  [[nodiscard]] bool read_from(Peer& peer);  ///< false: the connection has ended without a farewell
  void take(Peer& peer, std::string_view line);
  void look_for_silence(Peer& peer);
  void look_for_who_holds_up();
  void lose_ended(std::vector<Peer*> ended);
  void lose(const Peer& peer, std::string text, double silence_s);
  void report(const Failure& failure);
  void send(Peer& peer, const std::string& line);
  void send_all(const std::string& line);
  // With mutex_ held.
  [[nodiscard]] const Peer* peer_of(int process) const;
  [[nodiscard]] std::string describe_locked(int process) const;
  [[nodiscard]] std::string sentence_of(const Peer& peer) const;
  [[nodiscard]] std::string sentence_of_late(const Peer& peer) const;
  void beat();

  const int process_;
  const DetectorOptions options_;
  std::atomic<std::chrono::milliseconds> deadline_;
  std::vector<Address> addresses_;  ///< [process]; process 0: its own alone
  Callbacks callbacks_;
  int listener_ = -1;
  int wake_[2] = {-1, -1};  ///< a byte in it ends the thread
  Heartbeat heartbeat_;

  mutable std::mutex mutex_;  ///< guards what follows
  std::vector<Peer> peers_;   ///< process 0: all others; others: process 0
  Peer self_;                 ///< process 0 may be the one that holds up
  std::optional<Failure> failure_;
  bool own_ = false;    ///< failure_ was found here, not told
  bool heard_ = false;  ///< process 0 knows of it, or of another one

  std::thread thread_;  ///< last: it uses all of the above
};

}  // namespace paceline::comm

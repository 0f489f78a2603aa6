#pragma once

/// Detects processes of the run that are lost, stopped or hanging.
///
/// Every other process has a TCP connection to process 0, apart from the messages of the collectives. A
/// thread sends a heartbeat over it twice a second: step and phase of the process's first rank, and how long
/// it has waited in a collective (comm/failure/heartbeat.h). A process that dies is noticed at once, since
/// its connection ends without a goodbye; a stopped process by missing heartbeats; a hanging one by the
/// waiting that others report (comm/failure/rank_status.h). Process 0 decides, tells all others, and prints
/// it.
///
/// Threads   any
/// Lifetime  all processes make one together; the destructor says goodbye

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "comm/failure/heartbeat.h"
#include "comm/failure/rank_status.h"
#include "comm/line_socket.h"

namespace paceline::comm {

struct DetectorOptions {
  std::chrono::milliseconds beat{500};
  std::chrono::milliseconds silent{3500};   ///< warn after this time without a heartbeat (5 s in all if busy)
  std::chrono::milliseconds held_up{3000};  ///< warn when others have waited this long for one that is stuck
  std::chrono::milliseconds said_again{60000};  ///< repeat a warning after this time
  std::chrono::milliseconds deadline{60000};    ///< lost after this time without a heartbeat
  std::chrono::milliseconds connecting{20000};
  std::string interface = {};    ///< network interface for the connections; "": any
  bool is_on_this_host = false;  ///< all processes are on this host: no other can connect
};

class FailureDetector {
 public:
  /// Process 0 makes its object first and sends `address()` to the others. They pass `addresses` [process]:
  /// that one, and those of the others' SurvivorProbes.
  FailureDetector(int processes, DetectorOptions options);  ///< process 0
  FailureDetector(int process, std::vector<Address> addresses,
                  DetectorOptions options);  ///< the others: connects
  ~FailureDetector();
  FailureDetector(const FailureDetector&) = delete;
  FailureDetector& operator=(const FailureDetector&) = delete;

  [[nodiscard]] const Address& address() const { return addresses_.front(); }
  /// `ranks_of(process)` names a process in messages, "rank 3" or "ranks 6 to 7". `on_failure` is called
  /// once, from the detector's thread, with a failure of another process. `warn` gets warnings to print
  /// (process 0).
  struct Callbacks {
    std::function<std::string(int process)> ranks_of;
    std::function<void(const Failure&)> on_failure;
    std::function<void(const std::string&)> warn;
  };
  /// Starts the thread. Process 0 waits here until all others are connected.
  ///
  /// Errors   Error(comm) naming the processes that did not connect
  void start(Callbacks callbacks);

  /// Replaces the deadline of the options from now on.
  void set_deadline(std::chrono::milliseconds deadline) { deadline_ = deadline; }
  /// The contents of the next heartbeats.
  [[nodiscard]] Heartbeat& heartbeat() { return heartbeat_; }
  /// Tells the others that this process has failed.
  void fail(const Failure& failure);
  /// Asks the other survivors, when process 0 is lost, and returns the process that should report it. Adds to
  /// `text` the other processes that do not answer.
  ///
  /// Cost     that of probe_survivors()
  [[nodiscard]] int reporter_without_first(std::string& text) const;
  /// The first failure that this process knows of, its own or another's; the next function says which.
  [[nodiscard]] std::optional<Failure> failure() const;
  [[nodiscard]] bool failure_is_own() const;
  /// For a collective whose deadline is over before the detector's own: the failure that names the first of
  /// `processes` whose silence was warned of. Empty: all of them send heartbeats.
  [[nodiscard]] std::optional<Failure> silent_among(const std::vector<int>& processes) const;
  /// "rank 3 on host b (last in backward of step 97)"
  [[nodiscard]] std::string describe(int process) const;
  /// The same of a process that others wait for. Of several ranks it names the one that its own process waits
  /// for.
  [[nodiscard]] std::string describe_late(int process) const;
  /// For a process that failed: waits, at most `longest`, until process 0 has ended. (Process 0 may have a
  /// record to write, and launchers end all processes when one ends with an error.) True when process 0 has
  /// confirmed that it knows of a failure.
  bool wait_until_heard(std::chrono::milliseconds longest);

 private:
  struct Peer {
    int process = 0;
    Socket socket;
    std::string host;
    std::string incoming;  ///< the beginning of a line
    WatchedProcess seen;
    base::TimePoint heard{};
    bool began = false;      ///< its heartbeats have begun
    bool left = false;       ///< it has said goodbye
    bool warned = false;     ///< its silence was reported
    base::TimePoint said{};  ///< when it was last reported as holding up the others
  };

  void accept_all();
  /// Process 0, after its goodbye: reads until the connections end. Closing a connection with unread data
  /// would discard what the other side has not read yet.
  void read_to_the_ends();
  void reset_times();  ///< resets all times to now
  void serve();
  [[nodiscard]] bool read_from(Peer& peer);  ///< false: the connection has ended without a goodbye
  void take(Peer& peer, std::string_view line);
  void look_for_silence(Peer& peer);
  void look_for_who_holds_up();
  void lose_ended(std::vector<Peer*> ended);
  void lose(const Peer& peer, std::string text, double silence_s);
  void report(const Failure& failure);
  void send_all(const std::string& line);
  // With mutex_ held.
  [[nodiscard]] const Peer* peer_of(int process) const;
  [[nodiscard]] std::string describe_locked(int process) const;
  [[nodiscard]] std::string sentence_of(const Peer& peer) const;
  [[nodiscard]] std::string sentence_of_late(const Peer& peer) const;
  [[nodiscard]] Failure loss_by_silence(const Peer& peer, base::Clock::duration silence) const;
  void beat();

  const int process_;
  const DetectorOptions options_;
  std::atomic<std::chrono::milliseconds> deadline_;
  std::vector<Address> addresses_;  ///< [process]; process 0: its own alone
  Callbacks callbacks_;
  Socket listener_;
  Socket wake_;  ///< an eventfd, which ends the thread
  Heartbeat heartbeat_;

  mutable std::mutex mutex_;  ///< guards the members below
  std::vector<Peer> peers_;   ///< process 0: all others; others: process 0
  Peer self_;                 ///< process 0 itself, which may hold up the others
  std::optional<Failure> failure_;
  bool own_ = false;    ///< failure_ was found here, not received
  bool heard_ = false;  ///< process 0 knows of failure_, or of another one

  std::thread thread_;  ///< last: it uses all of the above
};

}  // namespace paceline::comm

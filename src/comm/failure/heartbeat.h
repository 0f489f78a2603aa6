#pragma once

/// The state that a process's threads publish for its next heartbeat: where they are, and whether they wait.
///
/// A waiting thread checks now and then whether it should go on waiting, and counts these looks here. A
/// thread without a look for six heartbeats does not wait but hangs; it is reported as idle (Doing::rests).
/// Looks are counted per heartbeat, not timed, since in a process that is stopped as a whole both stand
/// still.
///
/// Threads  at() and held_up_by(): any. enters(), looks(), leaves(): one at a time for each channel. now():
///          one

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "comm/failure/rank_status.h"
#include "comm/failure/stall_detector.h"
#include "comm/wire.h"

namespace paceline::comm {

/// Why a run failed. The kind determines the exit code of every process.
struct Failure {
  base::ErrorKind kind = base::ErrorKind::comm;
  std::string text;
  std::optional<double> detection_s = {};  ///< of a loss: from the last sign of life to its detection
  int reporter = 0;  ///< the process that reports it: 0, or the lowest survivor when 0 is lost
  base::TimePoint known_at = base::Clock::now();
  /// Whether process 0 itself is lost, which otherwise reports failures and writes the record.
  [[nodiscard]] bool of_first() const { return reporter != 0; }
};

/// "KIND MS TEXT" in one line; MS: the detection time, or -. The reporter is not sent: a process that hears
/// of a failure from process 0 leaves the report to process 0.
[[nodiscard]] std::string line_of(const Failure& failure);
[[nodiscard]] Failure failure_of(std::string_view line);

class Heartbeat {
 public:
  /// Sets step and phase. Every call counts as a sign of progress, even with the same values.
  void at(std::int64_t step, const char* phase);
  /// For a process of several ranks that waits for one of them: reports that rank's place as the process's,
  /// while the process does not wait for other processes. nullopt ends it.
  void held_up_by(const std::optional<RankStatus>& rank);
  /// A collective of `channel` begins.
  ///
  /// Cost     a store
  void enters(Channel channel) { add_one(of(channel).collectives); }
  /// It still waits: for others, or (`follows`) for process 0's next order.
  void looks(Channel channel, bool follows);
  /// The collective ends. This counts as a sign of progress too, since the process could do nothing before.
  void leaves(Channel channel);

  /// Starts counting collectives again from 0, when the set of processes changes.
  void restart_counting() {
    for (auto& stream : streams_) stream.collectives.store(0, std::memory_order_relaxed);
  }

  /// The state for a heartbeat, including whether the process has worked since the last call.
  ///
  /// Cost     two system calls
  [[nodiscard]] RankStatus now();

 private:
  struct Stream {
    std::atomic<std::int64_t> collectives{0};
    std::atomic<std::int64_t> looks{0};
    std::atomic<base::TimePoint> since{};  ///< {}: it does not wait
    std::atomic<bool> follows{false};
    std::int64_t seen = 0;  ///< value of `looks` at the last now()
    int unseen = 0;         ///< heartbeats without a look
  };
  [[nodiscard]] Stream& of(Channel channel) { return streams_[static_cast<int>(channel)]; }
  static void add_one(std::atomic<std::int64_t>& count) {
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  std::atomic<std::int64_t> step_{0};
  std::atomic<const char*> phase_{nullptr};
  std::atomic<std::int64_t> signs_{0};  ///< calls of at() and leaves()
  Stream streams_[2];

  WorkMeter work_;               ///< used by now() only
  std::int64_t seen_signs_ = 0;  ///< used by now() only

  std::mutex mutex_;  ///< guards late_
  std::optional<RankStatus> late_;
};

}  // namespace paceline::comm

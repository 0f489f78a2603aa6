#pragma once

/// What a process's own threads leave for its next heartbeat: where they are, and whether they wait.
///
/// A thread that waits looks now and then whether it shall go on doing so, and says so here. Where no look
/// has come for six heartbeats the thread does not wait, it hangs, and is told as one that rests. Looks are
/// counted from heartbeat to heartbeat, not timed: in a process that was stopped as a whole neither goes on.
///
/// Threads  at() and held_up_by() from any; of each channel enters(), looks() and leaves() from one at a
///          time; now() from one

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "base/clock.h"
#include "comm/failure/rank_status.h"
#include "comm/wire.h"
#include "comm/work_meter.h"

namespace paceline::comm {

class Heartbeat {
 public:
  /// A sign that it goes on, also from where it was before.
  void at(std::int64_t step, const char* phase);
  /// Of a process of several ranks that waits for one of them: that one's place is the process's until
  /// nullopt, while the process does not wait for others.
  void held_up_by(const std::optional<RankStatus>& rank);
  /// A collective of `channel` begins. Cost   a store
  void enters(Channel channel) { add_one(of(channel).collectives); }
  /// That it waits still: for others, or (`follows`) for the first process's next word.
  void looks(Channel channel, bool follows);
  /// A sign as well: one that has just been let go has had nothing to do before.
  void leaves(Channel channel);

  /// From now on the collectives are those of other processes than before.
  void counts_anew() {
    for (auto& stream : streams_) stream.collectives.store(0, std::memory_order_relaxed);
  }

  /// For a heartbeat: how it has gone since the last.
  ///
  /// Cost     two system calls
  [[nodiscard]] RankStatus now();

 private:
  struct Stream {
    std::atomic<std::int64_t> collectives{0};
    std::atomic<std::int64_t> looks{0};
    std::atomic<base::TimePoint> since{};  ///< {}: it does not wait
    std::atomic<bool> follows{false};
    std::int64_t seen = 0;  ///< of `looks`, by now()
    int unseen = 0;         ///< heartbeats on which there was no look
  };
  [[nodiscard]] Stream& of(Channel channel) { return streams_[static_cast<int>(channel)]; }
  static void add_one(std::atomic<std::int64_t>& count) {
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  std::atomic<std::int64_t> step_{0};
  std::atomic<const char*> phase_{nullptr};
  std::atomic<std::int64_t> signs_{0};  ///< calls of at() and leaves()
  Stream streams_[2];

  WorkMeter work_;               ///< of now() alone
  std::int64_t seen_signs_ = 0;  ///< of now() alone

  std::mutex mutex_;  ///< guards what follows
  std::optional<RankStatus> late_;
};

}  // namespace paceline::comm

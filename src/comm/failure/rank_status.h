#pragma once

/// The state of a process as its heartbeats report it, and which process holds up the others. Pure functions.
///
/// In the training loop all processes meet in collectives, usually several times a second. So whoever has not
/// moved while others wait for it holds them up. Before the first step and after the last, a process may read
/// a checkpoint, decode images or measure kernels for a long time. There it holds up the others only if it
/// neither computes nor reads nor writes.
///
/// A process that waits is not blamed. If all wait, one of them has missed a message that has come: the one
/// that has entered the fewest collectives, since all enter the same ones. If nobody waits and nobody works,
/// all hang, each in a read of its own or all for the same reason.

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace paceline::comm {

enum class Doing {
  works,    ///< computes, reads or writes
  rests,    ///< has done none of that since the last heartbeat
  waits,    ///< waits for others in a collective
  follows,  ///< waits for the next order of process 0, which may take long
};

struct RankStatus {
  std::int64_t step = 0;  ///< from 1; 0 outside of the training loop
  std::string phase = "the start";
  Doing doing = Doing::works;
  std::chrono::milliseconds waited{0};  ///< if it waits or follows
  std::int64_t collectives = 0;         ///< entered so far
  int rank = -1;                        ///< the rank that this describes; -1: all ranks of the process
};

/// "97 812 waits 3120 - backward": step, collectives, doing, milliseconds, rank, phase.
[[nodiscard]] std::string line_of(const RankStatus& where);
[[nodiscard]] std::optional<RankStatus> rank_status_of(std::string_view line);
/// "backward of step 97"
[[nodiscard]] std::string place_of(const RankStatus& where);

/// "the others have waited 3 s for rank 1 on host b (...); it is given up after 60 s"
[[nodiscard]] std::string text_of_waiting(std::chrono::milliseconds waited, std::string_view who,
                                          std::chrono::milliseconds given_up_after);
/// "no rank has done anything for 3 s, neither computed nor read nor written: rank 0 on host b (...), ..."
[[nodiscard]] std::string text_of_standstill(std::chrono::milliseconds rested,
                                             std::span<const std::string> who);
/// "; the run is given up after 60 s": the end of a warning while the run may still continue.
[[nodiscard]] std::string text_of_giving_up(std::chrono::milliseconds given_up_after);

/// One process as process 0 knows it.
struct WatchedProcess {
  RankStatus at;
  base::TimePoint moved{};   ///< when it last changed its place or entered a collective
  base::TimePoint worked{};  ///< when it last computed, read or wrote
  bool is_out = false;       ///< silent, or has left; handled elsewhere

  void take(RankStatus now, base::TimePoint when);
};

struct HeldUp {
  std::vector<std::size_t> by;          ///< the processes that others wait for
  std::chrono::milliseconds waited{0};  ///< the longest time that somebody has waited
  /// > 0: how long they have done nothing, while nobody waits for them in a collective. They are process 0,
  /// whose orders the others wait for, or all processes that do not wait for orders.
  std::chrono::milliseconds rested{0};
  /// All of `by` hang, and nobody waits.
  [[nodiscard]] bool is_standstill() const { return rested.count() > 0 && waited.count() == 0; }
};

/// The processes of `all` [process] that have let others wait for `longest` and have not moved for as long.
/// If nobody waits: all processes, if they have done nothing for `longest`.
[[nodiscard]] HeldUp who_holds_up(std::span<const WatchedProcess* const> all,
                                  std::chrono::milliseconds longest, base::TimePoint now);

}  // namespace paceline::comm

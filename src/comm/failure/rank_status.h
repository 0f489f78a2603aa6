#pragma once

/// Where a process of a run is and what it does there, as its heartbeats tell it, and whom the others wait
/// for: pure functions of that.
///
/// Inside the training loop everybody meets everybody several times a second or so: who stays where it is
/// while others wait for it holds them up. Outside of it, before the first step and after the last, a process
/// may have to read a checkpoint, decode images or measure kernels for as long as that takes: it holds up the
/// others only when it does not do that either, neither computes nor reads nor writes.
///
/// One that waits is no suspect. Where all wait, somebody has not noticed that what it waits for has come:
/// the one that has entered the fewest collectives, for all enter the same ones. Where nobody waits and
/// nobody does anything, all hang: each in a read of its own, or everybody for want of the same thing.

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
  rests,    ///< nothing of that since the last heartbeat
  waits,    ///< for others, in a collective
  follows,  ///< waits for the first process's next word, which may take long
};

struct RankStatus {
  std::int64_t step = 0;  ///< from 1; 0 outside of the training loop
  std::string phase = "the start";
  Doing doing = Doing::works;
  std::chrono::milliseconds waited{0};  ///< of one that waits or follows
  std::int64_t collectives = 0;         ///< entered so far
  int rank = -1;                        ///< whose place it is; -1: of all the process's ranks
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
/// "; the run is given up after 60 s": what follows that while it may still go on.
[[nodiscard]] std::string text_of_giving_up(std::chrono::milliseconds given_up_after);

/// One process as the first one knows it.
struct WatchedProcess {
  RankStatus at;
  base::TimePoint moved{};   ///< when it was in another place, or entered a collective, last
  base::TimePoint worked{};  ///< when it computed or read last
  bool is_out = false;       ///< silent, or has left: another matter

  void take(RankStatus now, base::TimePoint when);
};

struct HeldUp {
  std::vector<std::size_t> by;          ///< the processes that are waited for
  std::chrono::milliseconds waited{0};  ///< by who has waited longest
  /// Not 0: they have done nothing for so long, and nobody waits for them in a collective. They are the first
  /// process, which the others follow, or all that do not follow it.
  std::chrono::milliseconds rested{0};
  /// All of `by` hang, and nobody waits.
  [[nodiscard]] bool is_standstill() const { return rested.count() > 0 && waited.count() == 0; }
};

/// Who of `all` [process] has let others wait for `longest`, and stayed where it is for as long; or all that
/// have done nothing for `longest`, where nobody waits for anybody.
[[nodiscard]] HeldUp who_holds_up(std::span<const WatchedProcess* const> all,
                                  std::chrono::milliseconds longest, base::TimePoint now);

}  // namespace paceline::comm

#pragma once

/// Where the wall time of one rank goes: every second belongs to exactly one phase.
///
/// The ledger is one running clock: `enter(phase)` books the time since the last call on the phase that was
/// current. So the phases add up to the wall time by construction, a step costs a handful of clock reads, and
/// nothing is sampled. It is on in every run. What a device did while the host went on is booked later, from
/// where the last booking ended (`book`): the same sum, by the same construction.

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace paceline::measure {

enum class Phase {
  data_wait,  ///< the step waited for the loader
  copy,       ///< the batch into a device's memory; none on the processor
  forward,
  backward,
  exposed_transfer,  ///< waiting for bytes to move, nothing else to do
  exposed_wait,      ///< waiting for a later rank
  update,
  evaluation,
  checkpoint,
  other,
};
inline constexpr std::size_t kPhases = 10;
[[nodiscard]] std::string_view name(
    Phase phase);  ///< "data wait", "exposed transfer", ...: the tables' words

/// One stay in a phase, as it happened: what turns out to be waiting is still transfer here
/// (measure::with_waits).
struct PhaseSpan {
  Phase phase;
  base::TimePoint begin, end;
};

using PhaseSeconds = std::array<double, kPhases>;

/// The latest stays in a phase: their memory is taken once, and the oldest make room.
///
/// Threads  one
class LatestSpans {
 public:
  /// `most` that are kept, a power of two.
  explicit LatestSpans(std::size_t most) : spans_(most) {}
  void clear() { pushed_ = 0; }
  void push(const PhaseSpan& span) { spans_[pushed_++ & (spans_.size() - 1)] = span; }
  /// Those that end after `time`, in order. Cost: linear in what is kept.
  [[nodiscard]] std::vector<PhaseSpan> since(base::TimePoint time) const;
  /// Whether everything that ended after `time` is still kept.
  [[nodiscard]] bool has_all_since(base::TimePoint time) const;

 private:
  std::vector<PhaseSpan> spans_;
  std::size_t pushed_ = 0;
};

/// Threads  one
class Ledger {
 public:
  /// Begins the clock in Phase::other.
  void start();
  /// Books the time until now on the current phase; `phase` is current from now on. Returns the previous one.
  Phase enter(Phase phase);
  /// Books the time from the last booking until `until` on `phase`, which need not be current: for what is
  /// known later, of a device. A time before the last booking books nothing, one to come the time until now.
  /// Returns until when is booked now.
  base::TimePoint book(Phase phase, base::TimePoint until);
  /// Appends every stay in a phase to `spans`, once it is over, until there are `most`; nullptr: no longer.
  /// `spans` outlives that.
  void keep_spans(std::vector<PhaseSpan>* spans, std::size_t most);
  /// Puts every stay in a phase into `latest`, once it is over; nullptr: no longer. `latest` outlives that.
  void keep_latest(LatestSpans* latest) { latest_ = latest; }
  /// Moves `seconds` already booked from one phase to another: what turned out to be waiting was not
  /// transfer.
  void move(Phase from, Phase to, double seconds);
  /// Books the time until now and returns the totals since start().
  [[nodiscard]] PhaseSeconds totals();

 private:
  void add(Phase phase, base::TimePoint until);

  base::TimePoint since_{};
  Phase current_ = Phase::other;
  PhaseSeconds seconds_{};
  std::vector<PhaseSpan>* spans_ = nullptr;
  std::size_t most_spans_ = 0;
  LatestSpans* latest_ = nullptr;
};

/// For the length of a block: enters `phase`, and the one before at the end.
class InPhase {
 public:
  InPhase(Ledger& ledger, Phase phase) : ledger_(ledger), before_(ledger.enter(phase)) {}
  ~InPhase() { ledger_.enter(before_); }
  InPhase(const InPhase&) = delete;
  InPhase& operator=(const InPhase&) = delete;

 private:
  Ledger& ledger_;
  Phase before_;
};

}  // namespace paceline::measure

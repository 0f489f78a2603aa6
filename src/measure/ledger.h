#pragma once

/// Divides the wall time of one rank among phases: every second belongs to exactly one.
///
/// The ledger is one running clock: `enter(phase)` adds the time since the last call to the phase that was
/// current. So the phases add up to the wall time by construction, a step costs a few clock reads, and
/// nothing is sampled. It is on in every run. The time of a device that runs ahead of the host is added later
/// with `book`, from where the last addition ended, so the sum still holds.

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace paceline::measure {

enum class Phase {
  data_wait,  ///< the step waited for the loader
  copy,       ///< the batch is copied to a device; 0 on the processor
  forward,
  backward,
  exposed_transfer,  ///< waiting for bytes to move, with nothing else to do
  exposed_wait,      ///< waiting for a later rank
  update,
  evaluation,
  checkpoint,
  other,
};
inline constexpr std::size_t kPhases = 10;
[[nodiscard]] std::string_view name(
    Phase phase);  ///< "data wait", "exposed transfer", ...: the tables' words

/// One stay in a phase. What later turns out to be waiting is still transfer here (measure::with_waits).
struct PhaseSpan {
  Phase phase;
  base::TimePoint begin, end;
};

using PhaseSeconds = std::array<double, kPhases>;

/// The latest stays in a phase, in memory that is allocated once; the oldest are overwritten.
///
/// Threads  one
class LatestSpans {
 public:
  /// Keeps `most` spans, a power of two.
  explicit LatestSpans(std::size_t most) : spans_(most) {}
  void clear() { pushed_ = 0; }
  void push(const PhaseSpan& span) { spans_[pushed_++ & (spans_.size() - 1)] = span; }
  /// The spans that end after `time`, in order.
  ///
  /// Cost     linear in what is kept
  [[nodiscard]] std::vector<PhaseSpan> since(base::TimePoint time) const;
  /// Whether all spans that ended after `time` are still kept.
  [[nodiscard]] bool has_all_since(base::TimePoint time) const;

 private:
  std::vector<PhaseSpan> spans_;
  std::size_t pushed_ = 0;
};

/// Threads  one
class Ledger {
 public:
  /// Starts the clock in Phase::other.
  void start();
  /// Adds the time until now to the current phase and makes `phase` current. Returns the previous one.
  Phase enter(Phase phase);
  /// Adds the time from the last addition until `until` to `phase`, which need not be current; for times of a
  /// device, which are known later. A time before the last addition adds nothing; a future time counts as
  /// now. Returns until when time has been added.
  base::TimePoint book(Phase phase, base::TimePoint until);
  /// Appends every finished stay in a phase to `spans`, until it has `most`; nullptr ends that. `spans` must
  /// live until then.
  void keep_spans(std::vector<PhaseSpan>* spans, std::size_t most);
  /// Puts every finished stay in a phase into `latest`; nullptr ends that. `latest` must live until then.
  void keep_latest(LatestSpans* latest) { latest_ = latest; }
  /// Moves `seconds` from one phase to another, when transfer turns out to have been waiting.
  void move(Phase from, Phase to, double seconds);
  /// Adds the time until now and returns the totals since start().
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

/// Enters `phase` for the duration of a block, then the previous phase again.
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

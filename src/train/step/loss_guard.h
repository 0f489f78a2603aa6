#pragma once

/// Detects that a training diverges, even while its loss is finite (rule and numbers: docs/reliability.md).
///
/// Every rank has the same loss of every step (votes.h), so all decide alike without communication.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "train/given/options.h"
#include "train/step/votes.h"

namespace paceline::train {

/// Everything that the decisions depend on. Checkpoints contain it, so a resumed training decides like an
/// uninterrupted one. Trivially copyable, since it is broadcast.
struct GuardState {
  static constexpr std::size_t kWindow = 32;
  std::array<double, kWindow> losses{};  ///< of the last good steps: a ring
  std::int64_t seen = 0;                 ///< good steps so far
  double lowest = 0;                     ///< the lowest median of the ring so far
  std::int64_t above = 0;                ///< consecutive steps with a loss above the bound
  std::int64_t skipped = 0;              ///< updates skipped so far
  std::int64_t skipped_in_row = 0;       ///< of them, since the last update that was made
  std::int64_t rollbacks = 0;            ///< so far; each lowered the learning rate
  bool operator==(const GuardState&) const = default;
};

/// Whether the loss of the last step was checked and found good. Only then is a checkpoint good.
[[nodiscard]] inline bool is_good(const GuardState& state) {
  return state.above == 0 && state.skipped_in_row == 0;
}

/// The verdict on a step's loss.
enum class Verdict {
  good,
  above,     ///< above the bound, but not yet for long enough: the update is made
  skipped,   ///< --on-nan skip: the update is skipped
  diverged,  ///< the update is skipped, and the training cannot continue from here
};

/// Cost     a median of 32 numbers per step: 0.2 us including the votes (bench/ledger_cost)
/// Threads  one, the worker's own
class LossGuard {
 public:
  /// A loss is above the bound if it exceeds both kOfLowest times the lowest median and kOfGuess times the
  /// loss of a uniform guess.
  static constexpr double kOfLowest = 10, kOfGuess = 10;
  static constexpr std::int64_t kSteps = 10;         ///< consecutive steps above the bound: diverged
  static constexpr std::int64_t kMostSkips = 10;     ///< consecutive ones, with --on-nan skip
  static constexpr std::int64_t kMostRollbacks = 5;  ///< per training
  static constexpr double kRateFactor = 0.25;        ///< each rollback multiplies the learning rate by this

  /// `watches` = false: only a loss that is not finite counts, and nothing is skipped.
  LossGuard(OnNan on_nan, int classes, std::int64_t global_batch, bool watches);

  /// Judges a step by the votes of all ranks.
  Verdict see(const Votes& all);

  /// Continues from this state, in a resumed run or after a rollback.
  void resume(const GuardState& state) { state_ = state; }
  [[nodiscard]] const GuardState& state() const { return state_; }

  /// The factor on the learning rate.
  [[nodiscard]] double rate_factor() const;
  /// How many steps directly before the last one had a bad loss too: the weights before the first of them
  /// were already bad.
  [[nodiscard]] std::int64_t bad_before() const { return bad_before_; }
  /// For a finite loss: how far above which bound it is, and for how long.
  [[nodiscard]] std::string what() const;

 private:
  void take(double loss);
  [[nodiscard]] double bound() const;

  const OnNan on_nan_;
  const double guess_;  ///< the loss of a uniform guess
  const double global_batch_;
  const bool watches_;
  GuardState state_;
  double last_loss_ = 0;
  std::int64_t bad_before_ = 0;
};

}  // namespace paceline::train

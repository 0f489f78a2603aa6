#pragma once

/// Whether a training diverges, while its loss may still be finite: the rule and its numbers
/// (docs/reliability.md).
///
/// Every rank has the same loss of every step (votes.h) and finds the same; nobody has to ask.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "train/options.h"
#include "train/votes.h"

namespace paceline::train {

/// All that the decisions depend on. Checkpoints keep it, so a resumed training decides as the uninterrupted
/// one. Trivially copyable: it is broadcast.
struct GuardState {
  static constexpr std::size_t kWindow = 32;
  std::array<double, kWindow> losses{};  ///< of the last good steps: a ring
  std::int64_t seen = 0;                 ///< good steps so far
  double lowest = 0;                     ///< the lowest median of the ring so far
  std::int64_t above = 0;                ///< steps in a row whose loss was above the bound
  std::int64_t skipped = 0;              ///< updates left out so far
  std::int64_t skipped_in_row = 0;       ///< of them, since the last that was made
  std::int64_t rollbacks = 0;            ///< so far; each lowered the learning rate
  bool operator==(const GuardState&) const = default;
};

/// Whether the loss of the last step was checked and found good; then so may a checkpoint be called.
[[nodiscard]] inline bool is_good(const GuardState& state) {
  return state.above == 0 && state.skipped_in_row == 0;
}

/// What a step's loss means.
enum class Verdict {
  good,
  above,     ///< the bound, but not yet for long enough: the update is made
  skipped,   ///< --on-nan skip: the update is left out
  diverged,  ///< the update is left out, and the training does not go on from here
};

/// Cost     a median of 32 numbers a step: with the votes 0.2 us (bench/ledger_cost)
/// Threads  one, the worker's own
class LossGuard {
 public:
  /// A step is above the bound where its loss is above kOfLowest times the lowest median, and above kOfGuess
  /// times what a uniform guess gives.
  static constexpr double kOfLowest = 10, kOfGuess = 10;
  static constexpr std::int64_t kSteps = 10;         ///< so many in a row above it: diverged
  static constexpr std::int64_t kMostSkips = 10;     ///< in a row, with --on-nan skip
  static constexpr std::int64_t kMostRollbacks = 5;  ///< of a training
  static constexpr double kRateFactor = 0.25;        ///< each multiplies the learning rate with this

  /// `watches`: off, only a loss that is not finite counts, and nothing is skipped.
  LossGuard(OnNan on_nan, int classes, std::int64_t global_batch, bool watches);

  /// The votes of all ranks in a step.
  Verdict see(const Votes& all);

  /// A resumed run, or one that went back to a checkpoint, goes on with this.
  void resume(const GuardState& state) { state_ = state; }
  [[nodiscard]] const GuardState& state() const { return state_; }

  /// What the learning rate is multiplied with.
  [[nodiscard]] double rate_factor() const;
  /// Steps before the last one whose loss was bad in a row with it: the weights of the first of them were
  /// bad already.
  [[nodiscard]] std::int64_t bad_before() const { return bad_before_; }
  /// Of a loss that is finite: how far above which bound, for how long.
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

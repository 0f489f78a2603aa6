#pragma once

/// Detects that a training diverges, even while its loss is finite (rule and numbers: docs/reliability.md).
///
/// Every rank has the same loss of every step, so all decide alike without communication. Beside it: what
/// ranks vote on in each step, and ValidationWatch for the validation figures.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "engine/engine.h"
#include "measure/record.h"
#include "train/given/options.h"

namespace paceline::train {

// ValidationWatch decides from validation figures during a training: which epoch is the best, when a plateau
// lowers the learning rate, and when early stopping ends the training.
//
// The figures are the same bits on every rank, so all ranks decide alike without communication.

/// Everything that the decisions depend on. Checkpoints contain it, so a resumed training decides like an
/// uninterrupted one. Trivially copyable, since it is broadcast.
struct ValidationState {
  std::int64_t best_update = 0;  ///< updates done after the best epoch; 0: nothing was validated yet
  std::int64_t best_epoch = 0;   ///< from 1
  double best_accuracy = 0, best_loss = 0;
  std::int64_t last_epoch = 0;     ///< the last that was validated
  std::int64_t reduced_epoch = 0;  ///< the last after which a plateau lowered the learning rate
  std::int64_t reductions = 0;     ///< how often it did
  bool operator==(const ValidationState&) const = default;
};

/// Threads  one, the worker's own
class ValidationWatch {
 public:
  ValidationWatch(const ScheduleOptions& schedule, int early_stopping)
      : schedule_(schedule), early_stopping_(early_stopping) {}

  void resume(const ValidationState& state) { state_ = state; }
  /// Adds an epoch's figures; an epoch without validation changes nothing. True if it is the best so far.
  bool see(const measure::EpochRecord& epoch);

  /// The factor on the learning rate: 1 except for --schedule plateau.
  [[nodiscard]] double rate_factor() const;
  /// Whether --early-stopping ends the training: its patience has passed since the best epoch.
  [[nodiscard]] bool is_over() const;
  [[nodiscard]] const ValidationState& state() const { return state_; }

 private:
  const ScheduleOptions schedule_;
  const int early_stopping_;
  ValidationState state_;
};

// What the ranks exchange in every step besides the gradients: a few floats whose sum is the same on all of
// them (docs/decisions/votes.md).

/// The votes of one rank, or their sum over all.
struct Votes {
  bool stop = false;        ///< asked to stop
  bool not_finite = false;  ///< the loss is not finite
  bool enough = false;      ///< has measured long enough
  double loss = 0;          ///< sum over samples; a sum that is not finite counts as 0
};

/// Three flags, then the loss in five parts. Devices write the same format (engine.h).
using engine::kVoteFloats;

/// A loss is a multiple of 2^-24 (engine.h) and is sent as an integer in parts of 12 bits. Float sums of
/// these over up to 4096 ranks are exact, so the sum does not depend on how samples are distributed. A rank's
/// sum above 2^35 is sent as 2^35.
[[nodiscard]] std::array<float, kVoteFloats> as_floats(const Votes& votes);
/// The votes in such floats, or in sums of them.
[[nodiscard]] Votes votes_from(std::span<const float> floats);

/// The state of a LossGuard, in checkpoints as ValidationState is.
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

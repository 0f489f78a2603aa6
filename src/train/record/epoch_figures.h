#pragma once

/// Accumulates loss, accuracy and time of the steps of an epoch.

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "comm/communicator.h"
#include "engine/engine.h"
#include "measure/ledger.h"
#include "measure/record.h"
#include "measure/timeline.h"
#include "train/record/timeline.h"
#include "train/step/exposed_comm.h"
#include "train/step/step.h"

namespace paceline::train {

// Keeps the spans of the last steps of a rank's window; every run does, for the timeline of its report.

/// All memory is allocated before the window begins; a step costs a copy of each of its spans.
///
/// Threads  one, the worker's own
class RecentSteps {
 public:
  /// The window begins, with nothing kept. Listens to `ledger`, which must outlive this.
  void start(measure::Ledger& ledger);
  /// Adds a step.
  void add(base::TimePoint begin, base::TimePoint end);
  /// Call after the last step of an epoch or of the window, before the logs are folded, so that they keep
  /// these steps too.
  void before_fold(CollectiveLog& gradients, CollectiveLog& statistics);
  /// Call after that: replaces what an earlier epoch left, unless no step was added.
  void after_fold();
  /// Gathers all ranks' last steps at rank 0; the others get nothing. Collective.
  ///
  /// `shares_clock`: all ranks are of one process. `collectives`: buckets per step.
  [[nodiscard]] std::optional<measure::LastStepsRecord> gather(comm::Communicator& communicator,
                                                               bool shares_clock, std::size_t collectives);

 private:
  static constexpr std::size_t kSteps = 3;
  static constexpr std::size_t kSpans = 1024;  ///< 24 kB; a step of a plain network has about ten
  struct Step {
    base::TimePoint begin{}, end{};
  };

  measure::Ledger* ledger_ = nullptr;
  measure::LatestSpans spans_{kSpans};
  std::array<Step, kSteps> latest_{};  ///< a ring
  std::size_t added_ = 0;              ///< since the last fold
  std::vector<Step> steps_;            ///< of kept_, in order
  KeptSpans kept_;
};

/// One step of one rank.
struct StepFigures {
  std::int64_t update = 0;  ///< from 1
  engine::LossSums local;   ///< of this rank's samples
  double lr = 0;
  double seconds = 0;
  double gradient_norm = 0;  ///< with --clip-norm, before clipping; with data-parallel worker 0's alone
  std::optional<StepSquares> squares = {};
};

/// Threads  one, the worker's own
class EpochFigures {
 public:
  EpochFigures(std::int64_t global_batch, bool keeps_steps, engine::UpdateRule rule = {},
               std::optional<measure::GradientSquares> no_squares = {})
      : global_batch_(global_batch),
        keeps_steps_(keeps_steps),
        rule_(rule),
        no_squares_(std::move(no_squares)) {}
  explicit EpochFigures(const Job& job)
      : EpochFigures(job.resolved.global_batch, train::keeps_steps(job), job.options.rule,
                     SquaresSchedule(job).described()) {}

  void add(const StepFigures& step);
  /// Adds a step whose update was skipped: only its count and time.
  void add_skipped(double seconds, double lr);
  /// Whether every step of the epoch so far was skipped, so that it has no loss.
  [[nodiscard]] bool has_no_loss() const { return added_.skipped > 0 && added_.sums.samples == 0; }
  [[nodiscard]] double lr() const { return lr_; }  ///< of the last step
  [[nodiscard]] double seconds() const { return added_.seconds; }
  /// Discards what was added since the epoch began.
  void forget() { added_ = {}; }
  /// Mean loss of this rank's samples since the epoch began.
  ///
  /// Requires  at least one step
  [[nodiscard]] double mean_loss() const;
  /// Joins all ranks' figures, appends the kept steps to `steps`, and begins the next epoch. The same result
  /// on every rank; the caller fills in the epoch's number and evaluation. Collective: one reduction, another
  /// if steps are kept, another if gradients were squared.
  [[nodiscard]] measure::EpochRecord close(comm::Communicator& communicator,
                                           std::vector<measure::StepRecord>& steps);

 private:
  const std::int64_t global_batch_;
  const bool keeps_steps_;  ///< keep each step's loss for the record
  const engine::UpdateRule rule_;
  const std::optional<measure::GradientSquares> no_squares_;  ///< of an epoch without a measured step
  double lr_ = 0;                                             ///< of the last step
  /// Of gradients.
  struct Norms {
    double sum = 0, largest = 0;
    std::int64_t count = 0, clipped = 0;
  };
  /// Since the epoch began.
  struct Added {
    engine::LossSums sums;
    double seconds = 0;
    std::int64_t skipped = 0;  ///< steps
    Norms norms;
    std::vector<double> small_squares, large_squares;  ///< of the measured steps; the small ones this rank's
    std::vector<measure::StepRecord> kept;
    std::vector<double> losses;  ///< of each kept step: this rank's sum
  };
  Added added_;
};

}  // namespace paceline::train

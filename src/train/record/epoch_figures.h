#pragma once

/// Accumulates loss, accuracy and time of the steps of an epoch.

#include <cstdint>
#include <vector>

#include "comm/communicator.h"
#include "engine/engine.h"
#include "measure/record.h"

namespace paceline::train {

/// One step of one rank.
struct StepFigures {
  std::int64_t update = 0;  ///< from 1
  engine::LossSums local;   ///< of this rank's samples
  double lr = 0;
  double seconds = 0;
};

/// Threads  one, the worker's own
class EpochFigures {
 public:
  /// `keeps_steps`: also keep each step's loss for the record.
  EpochFigures(std::int64_t global_batch, bool keeps_steps)
      : global_batch_(global_batch), keeps_steps_(keeps_steps) {}

  void add(const StepFigures& step);
  /// Adds a step whose update was skipped: only its count and time.
  void add_skipped(double seconds, double lr);
  /// Whether every step of the epoch so far was skipped, so that it has no loss.
  [[nodiscard]] bool has_no_loss() const { return skipped_ > 0 && sums_.samples == 0; }
  [[nodiscard]] double lr() const { return lr_; }  ///< of the last step
  /// Discards what was added since the epoch began.
  void forget();
  /// Mean loss of this rank's samples since the epoch began.
  ///
  /// Requires  at least one step
  [[nodiscard]] double mean_loss() const;
  /// Joins all ranks' figures, appends the kept steps to `steps`, and begins the next epoch. The same result
  /// on every rank; the caller fills in the epoch's number and evaluation. Collective: one reduction, two if
  /// steps are kept.
  [[nodiscard]] measure::EpochRecord close(comm::Communicator& communicator,
                                           std::vector<measure::StepRecord>& steps);

 private:
  const std::int64_t global_batch_;
  const bool keeps_steps_;
  engine::LossSums sums_;
  double seconds_ = 0;
  double lr_ = 0;             ///< of the last step
  std::int64_t skipped_ = 0;  ///< steps
  std::vector<measure::StepRecord> kept_;
  std::vector<double> losses_;  ///< of each kept step: this rank's sum
};

}  // namespace paceline::train

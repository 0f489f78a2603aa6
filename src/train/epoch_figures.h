#pragma once

/// What the steps of an epoch come to: loss, accuracy and time, from one end of an epoch to the next.

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
  /// `keeps_steps`: each step's loss is kept for the record as well.
  EpochFigures(std::int64_t global_batch, bool keeps_steps)
      : global_batch_(global_batch), keeps_steps_(keeps_steps) {}

  void add(const StepFigures& step);
  /// A step whose update was left out: it counts as a step and takes its time, and nothing else of it counts.
  void add_skipped(double seconds, double lr);
  /// Whether every step since the epoch began was left out: it then has no loss.
  [[nodiscard]] bool has_no_loss() const { return skipped_ > 0 && sums_.samples == 0; }
  [[nodiscard]] double lr() const { return lr_; }  ///< of the last step
  /// What was added since the epoch began is forgotten.
  void forget();
  /// Of this rank's samples since the epoch began. Needs a step.
  [[nodiscard]] double mean_loss() const;
  /// Joins all ranks' figures, appends the steps that are kept to `steps`, and begins the next epoch. The
  /// same on every rank; which epoch it was, and what an evaluation says of it, is the caller's to fill in.
  /// Collective: one reduction, two where steps are kept.
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

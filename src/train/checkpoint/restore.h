#pragma once

/// Sets the state of a worker's training: initial weights or a checkpoint at the beginning, an earlier
/// checkpoint after a divergence (Recovery), the best epoch's weights at the end (BestWeights).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "comm/communicator.h"
#include "engine/engine.h"
#include "measure/ledger.h"
#include "measure/record.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/checkpoint_schedule.h"
#include "train/given/job.h"
#include "train/record/gather.h"
#include "train/record/run_events.h"
#include "train/step/loss_guard.h"
#include "train/step/slow_weights.h"
#include "train/step/step.h"

namespace paceline::train {

// BestWeights keeps the weights of the best epoch on validation, with their average (--ema), until the test
// set is evaluated with them.
//
// Rank 0 holds them in memory. If checkpoints are written they are in a file too (best_checkpoint_path),
// from which a resumed training reads them.

/// Threads  one, the worker's own
class BestWeights {
 public:
  BestWeights(comm::Communicator& communicator, engine::Engine& engine, SlowWeights& slow)
      : communicator_(communicator), engine_(engine), slow_(slow) {}

  /// Copies the engine's weights as the best so far.
  void keep();
  /// Rank 0: reads them from the checkpoint `file`.
  ///
  /// Errors   as read_weights()
  void read(const std::filesystem::path& file);
  /// Copies them into every rank's engine. Collective.
  void put_back();

 private:
  comm::Communicator& communicator_;
  engine::Engine& engine_;
  SlowWeights& slow_;
  std::vector<float> weights_, average_;  ///< rank 0; empty: none yet
};

/// Where the state of a worker's training lies, and its checkpoints.
struct TrainingParts {
  const Job& job;
  comm::Communicator& communicator;
  engine::Engine& engine;
  SlowWeights& slow;
  BestWeights& best;
  CheckpointSchedule& schedule;
};

/// The restored state, the same on every rank. Trivially copyable, since it is broadcast.
struct Restored {
  TrainingState standing;
  /// The checkpoint was written before the evaluation of its last epoch, and the run was lost during it. The
  /// evaluation must be repeated first, since later decisions may depend on it.
  bool evaluates_first = false;
  bool is_at_target = false;  ///< an evaluation before the checkpoint, or at it, reached the target
};

/// Initial weights, or those of a checkpoint, which rank 0 reads, names in `notes` and broadcasts.
/// Collective.
///
/// Errors   Error(data): as read_checkpoint()
[[nodiscard]] Restored restore(const TrainingParts& parts, std::vector<std::string>& notes);

// Recovery handles a training that diverges: it stops the training, goes back to its newest good checkpoint,
// or skips the updates of bad steps (--on-nan). All ranks make the same decision in the same step.

/// Thrown on every rank in the same step: the weights are useless, and the training has to go back to a
/// checkpoint. If nobody catches it, it ends the run with its sentence.
class Setback : public base::AgreedError {
 public:
  Setback(const std::string& sentence, std::string reason, std::int64_t last_update, std::int64_t bad_update)
      : AgreedError(base::ErrorKind::data, sentence),
        what_happened(std::move(reason)),
        update(last_update),
        first_bad(bad_update) {}

  std::string what_happened;
  std::int64_t update = 0;     ///< at which it was found
  std::int64_t first_bad = 0;  ///< number of updates after which the weights were already bad
};

/// Threads  one, the worker's own
class Recovery {
 public:
  Recovery(const TrainingParts& parts, RunEvents& events);

  [[nodiscard]] LossGuard& guard() { return guard_; }

  /// Judges step `update` (from 0) after it was done. Returns whether its update was made.
  ///
  /// Errors   Setback or Error(data) if the training diverged, naming the batch and its samples
  bool is_updated(const StepResult& outcome, std::int64_t update, double lr);
  /// Checks the weights after an epoch's last update, before they are saved as good ones. (A step's loss is
  /// known before its update.) The same result on all ranks.
  ///
  /// Errors   as is_updated()
  void require_finite_weights(const measure::EpochRecord& epoch, measure::Ledger& ledger);
  /// The same for the losses of an evaluation; removes its checkpoint.
  void require_finite_losses(const measure::EpochRecord& epoch);
  /// Fails because every step since the last epoch was skipped.
  [[noreturn]] void all_were_skipped(std::int64_t updates, double lr);

  /// Restores the newest good checkpoint before `setback`, and lowers the learning rate. Collective.
  ///
  /// Requires  all ranks have called CheckpointSchedule::meet()
  /// Errors    AgreedError with the setback's sentence if there is no such checkpoint, or after
  ///           LossGuard::kMostRollbacks of them
  TrainingState roll_back(const Setback& setback);

  /// Adds rollbacks, skipped updates and the engine's loss scale to the result, for the record.
  void tell(WorkerResult& result) const;

 private:
  /// `update` is from 1.
  [[noreturn]] void diverged(std::int64_t update, std::int64_t first_bad, double lr, const std::string& what);
  [[nodiscard]] std::string describe(const StepResult& outcome) const;

  const TrainingParts parts_;
  RunEvents& events_;
  LossGuard guard_;
  std::vector<measure::RollbackRecord> rollbacks_;  ///< of this run
};

}  // namespace paceline::train

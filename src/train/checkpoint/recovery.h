#pragma once

/// Recovery handles a training that diverges: it stops the training, goes back to its newest good checkpoint,
/// or skips the updates of bad steps (--on-nan). All ranks make the same decision in the same step.

#include <cstdint>
#include <string>
#include <vector>

#include "base/agreed_error.h"
#include "comm/communicator.h"
#include "engine/engine.h"
#include "measure/ledger.h"
#include "measure/record.h"
#include "train/checkpoint/checkpoint_writer.h"
#include "train/checkpoint/restore.h"
#include "train/given/job.h"
#include "train/record/run_events.h"
#include "train/record/worker_result.h"
#include "train/step/loss_guard.h"
#include "train/step/step.h"

namespace paceline::train {

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
  Recovery(const Job& job, comm::Communicator& communicator, RunEvents& events);

  [[nodiscard]] LossGuard& guard() { return guard_; }

  /// Judges step `update` (from 0) after it was done. Returns whether its update was made.
  ///
  /// Errors   Setback or Error(data) if the training diverged, naming the batch and its samples
  bool is_updated(const StepResult& outcome, std::int64_t update, double lr, CheckpointWriter& writer);
  /// Checks the weights after an epoch's last update, before they are saved as good ones. (A step's loss is
  /// known before its update.) The same result on all ranks.
  ///
  /// Errors   as is_updated()
  void require_finite_weights(const measure::EpochRecord& epoch, engine::Engine& engine,
                              CheckpointWriter& writer, measure::Ledger& ledger);
  /// The same for the losses of an evaluation; removes its checkpoint.
  void require_finite_losses(const measure::EpochRecord& epoch, CheckpointWriter& writer);
  /// Fails because every step since the last epoch was skipped.
  [[noreturn]] void all_were_skipped(std::int64_t updates, double lr, CheckpointWriter& writer);

  /// Restores the newest good checkpoint before `setback`, and lowers the learning rate. Collective.
  ///
  /// Requires  all ranks have called CheckpointWriter::meet()
  /// Errors    AgreedError with the setback's sentence if there is no such checkpoint, or after
  ///           LossGuard::kMostRollbacks of them
  Standing roll_back(const Setback& setback, engine::Engine& engine, Lookahead& lookahead, BestWeights& best,
                     CheckpointWriter& writer);

  /// Adds rollbacks and skipped updates to the result, for the record.
  void tell(WorkerResult& result) const;

 private:
  struct Where {
    std::int64_t update = 0;  ///< from 1
    std::int64_t first_bad = 0;
    double lr = 0;
  };
  [[noreturn]] void diverged(const Where& where, const std::string& what, CheckpointWriter& writer);
  [[nodiscard]] std::string describe(const StepResult& outcome) const;

  const Job& job_;
  comm::Communicator& communicator_;
  RunEvents& events_;
  LossGuard guard_;
  std::vector<measure::RollbackRecord> rollbacks_;  ///< of this run
};

}  // namespace paceline::train

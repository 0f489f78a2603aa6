#pragma once

/// Decides when a run's record and checkpoints are written. Rank 0 copies the arrays, and a thread writes the
/// copy while the training continues. The other ranks wait for it only if the next checkpoint is due before
/// the disk has finished the previous one.
///
/// At the end of an evaluated epoch the checkpoint is written before the evaluation, which may take long or
/// fail, and confirmed after it. Until then older checkpoints stay. If the evaluation shows that the weights
/// are useless, the new checkpoint is removed again.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/thread_pool.h"
#include "comm/communicator.h"
#include "engine/engine.h"
#include "measure/ledger.h"
#include "measure/record.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/checkpoint_files.h"
#include "train/given/job.h"
#include "train/step/slow_weights.h"

namespace paceline::train {

/// Threads  one, the worker's own; a second one writes
class CheckpointSchedule {
 public:
  CheckpointSchedule(const Job& job, comm::Communicator& communicator, engine::Engine& engine,
                     SlowWeights& slow, measure::Ledger& ledger)
      : job_(job),
        communicator_(communicator),
        engine_(engine),
        slow_weights_(slow),
        ledger_(ledger),
        files_(job) {}

  /// With --on-nan rollback: writes a checkpoint of the initial state, if there is no good one yet.
  void keep_first(const TrainingState& standing);

  using Epochs = std::vector<measure::EpochRecord>;

  /// Call after a step inside an epoch. Rank 0 begins a checkpoint if the interval has passed and none is
  /// being written; otherwise a later call does. Never waits for the disk.
  ///
  /// If one is begun, `guard` is called for the state of the loss guard after all steps so far. If it returns
  /// nothing, the checkpoint is left to a later step.
  ///
  /// Cost     a look at the clock; when due, one copy of the arrays
  void after_step(const Epochs& epochs, TrainingState standing,
                  const std::function<std::optional<GuardState>()>& guard);

  /// Call at the end of an epoch. Returns when everything begun is on disk; waits for up to ten deadlines.
  /// Collective.
  void meet(std::int64_t update);

  /// Call before an evaluation: begins the checkpoint of this epoch if the interval or `is_due` demands one.
  ///
  /// Requires  meet() was called
  void before_evaluation(const Epochs& epochs, const TrainingState& standing, bool is_due);

  /// What to keep after an epoch, besides the record.
  struct What {
    bool is_due = false;   ///< a checkpoint, even if the interval demands none
    bool is_best = false;  ///< this epoch is the best on validation so far: a file of its own
  };
  /// Writes the epochs so far, and the weights as `what` says; confirms the checkpoint of
  /// before_evaluation().
  ///
  /// Requires  meet() was called after the last step
  void keep(const Epochs& epochs, const TrainingState& standing, What what);

  /// Removes the checkpoint of before_evaluation(), since the weights of the last update are useless.
  void discard();

  /// Rank 0: the files, once everything begun is on disk.
  [[nodiscard]] CheckpointFiles& written();
  /// The run has gone back to such a checkpoint and continues from there.
  void go_back(const TrainingState& standing);

  /// Call at the end of the run: meet(). At rank 0 returns a sentence about files that could not be written,
  /// for the record; "" if there are none. Collective.
  ///
  /// Errors   Error(data) at rank 0 if the last files could not be written: path and reason
  [[nodiscard]] std::string finish(std::int64_t update);

 private:
  [[nodiscard]] bool is_root() const { return communicator_.rank() == 0; }
  [[nodiscard]] bool writes() const;
  /// Whether the interval has passed now.
  [[nodiscard]] bool is_over(const Counters& counters) const;
  void take_snapshot();
  void add_checkpoint(const TrainingState& standing);
  /// Lets the files remove older checkpoints that no rollback would need.
  void add_confirmation(const TrainingState& standing);
  void tell();
  void wait_for_disk();
  /// Rank 0, while files are written: warns once when that takes longer than the deadline, and fails after
  /// ten deadlines.
  void check_disk(bool others_wait);

  const Job& job_;
  comm::Communicator& communicator_;
  engine::Engine& engine_;
  SlowWeights& slow_weights_;
  measure::Ledger& ledger_;
  base::TimePoint last_begun_ = base::Clock::now();  ///< when the last checkpoint was begun
  std::int64_t update_ = 0;                          ///< of what is being written
  bool is_overdue_ = false;                          ///< the interval passed while another one was written
  std::optional<ValidationState> unconfirmed_;       ///< the state in before_evaluation()'s checkpoint
  bool slow_ = false;                                ///< the slow disk was reported
  CheckpointFiles files_;
  Snapshot snapshot_;
  base::BackgroundTasks tasks_{"the thread that writes checkpoints"};  ///< last: they use files and snapshot
};

}  // namespace paceline::train

#pragma once

/// When a run's record and checkpoints are written, and by whom: rank 0 copies what a checkpoint holds, and a
/// thread of its own writes the copy while the training goes on. The other ranks wait for that only where the
/// next one is due and the disk has not finished the one before.
///
/// At the end of an epoch that is evaluated the checkpoint is written before the evaluation, which may take
/// long or fail, and confirmed after it: until then older checkpoints stay, and one whose evaluation shows
/// that it is of no use is removed again.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/background_tasks.h"
#include "base/clock.h"
#include "comm/communicator.h"
#include "engine/engine.h"
#include "measure/ledger.h"
#include "measure/record.h"
#include "train/checkpoint_keeper.h"
#include "train/job.h"
#include "train/lookahead.h"
#include "train/snapshot.h"

namespace paceline::train {

/// Threads  one, the worker's own; beside it the thread that writes
class CheckpointWriter {
 public:
  CheckpointWriter(const Job& job, comm::Communicator& communicator, engine::Engine& engine,
                   Lookahead& lookahead, measure::Ledger& ledger)
      : job_(job),
        communicator_(communicator),
        engine_(engine),
        lookahead_(lookahead),
        ledger_(ledger),
        keeper_(job) {}

  /// Rank 0's run goes on from this checkpoint.
  void resumed_from(const ResumePoint& point) { keeper_.resumed_from(point); }

  /// With --on-nan rollback: where there is no good checkpoint yet to go back to, one of where the run
  /// begins.
  void keep_first(const Standing& standing);

  using Epochs = std::vector<measure::EpochRecord>;

  /// After a step inside an epoch: rank 0 begins a checkpoint where the interval is over and none is being
  /// written; else it is begun after a later step. Never waits for the disk.
  ///
  /// Where one is begun, `guard` says what standing.guard will be when all steps so far are known; where it
  /// gives nothing, the checkpoint is left for a later step.
  ///
  /// Cost     a look at the clock; one copy of the arrays where it is due
  void after_step(const Epochs& epochs, Standing standing,
                  const std::function<std::optional<GuardState>()>& guard);

  /// At the end of an epoch, before what follows: returns when what was begun is on disk, however slow that
  /// is: up to ten deadlines. Collective.
  void meet(std::int64_t update);

  /// Before an evaluation: begins the checkpoint that is due with it. `is_due`: also where the interval says
  /// nothing. Requires: meet().
  void before_evaluation(const Epochs& epochs, const Standing& standing, bool is_due);

  /// What is kept after an epoch, beside the record.
  struct What {
    bool is_due = false;   ///< a checkpoint, also where the interval says nothing
    bool is_best = false;  ///< this epoch is the best on validation so far: a file of its own
  };
  /// Keeps the epochs so far, and the weights as `what` says; confirms what before_evaluation() has begun.
  /// Requires: meet(), after the last step.
  void keep(const Epochs& epochs, const Standing& standing, What what);

  /// The weights of the last update are of no use: what before_evaluation() has begun goes again.
  void discard();

  /// Rank 0, when all have met: the newest good checkpoint of fewer than `before` updates; "": none is left.
  [[nodiscard]] std::filesystem::path good_before(std::int64_t before);
  /// Rank 0: the same or, where this run has none, the one of another directory that it went on from.
  [[nodiscard]] std::filesystem::path good_before_anywhere(std::int64_t before);
  /// The run has gone back to such a checkpoint, and goes on from there.
  void go_back(const Standing& standing);

  /// At the end of the run: meet(). Returns how many files were left out, for the record, at rank 0; "":
  /// none. Collective.
  /// Errors   Error(data) at rank 0 where the last files could not be written: path and reason
  [[nodiscard]] std::string finish(std::int64_t update);

 private:
  [[nodiscard]] bool is_root() const { return communicator_.rank() == 0; }
  [[nodiscard]] bool writes() const;
  /// By the interval, at this moment; `number`: of the epoch that ends (from 1), 0: none does.
  [[nodiscard]] bool is_over(const Counters& counters, std::int64_t number);
  void take_snapshot();
  void add_checkpoint(const Standing& standing);
  /// Removes what is older than what is kept, and no rollback would need.
  void add_confirmation(const Standing& standing);
  void tell();
  void wait_for_disk();
  /// Rank 0, while it is written: says once that it takes longer than the deadline, and gives up after ten of
  /// them.
  void look_at_disk(bool others_wait);

  const Job& job_;
  comm::Communicator& communicator_;
  engine::Engine& engine_;
  Lookahead& lookahead_;
  measure::Ledger& ledger_;
  base::TimePoint last_begun_ = base::Clock::now();  ///< a checkpoint
  std::int64_t update_ = 0;                          ///< of what is being written
  bool is_overdue_ = false;                          ///< the interval was over while another was written
  std::optional<ValidationState> unconfirmed_;       ///< what the checkpoint of before_evaluation() says
  bool slow_ = false;                                ///< said of the disk
  CheckpointKeeper keeper_;
  Snapshot snapshot_;
  base::BackgroundTasks tasks_{"the thread that writes checkpoints"};  ///< last: they use keeper and snapshot
};

}  // namespace paceline::train

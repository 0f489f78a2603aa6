#pragma once

/// What a run leaves behind after an epoch: rank 0 writes checkpoint and record, the others wait for it.

#include <filesystem>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "engine/engine.h"
#include "measure/ledger.h"
#include "measure/record.h"
#include "train/checkpoint.h"
#include "train/job.h"
#include "train/lookahead.h"

namespace paceline::train {

/// Threads  one, the worker's own; while it writes, a thread of its own writes
class CheckpointWriter {
 public:
  CheckpointWriter(const Job& job, comm::Communicator& communicator, engine::Engine& engine,
                   Lookahead& lookahead, measure::Ledger& ledger)
      : job_(job), communicator_(communicator), engine_(engine), lookahead_(lookahead), ledger_(ledger) {}

  /// Rank 0's run goes on from this checkpoint: it is the last one now, and may be removed when it is old.
  /// With the file of its best epoch, which is copied where this run writes elsewhere.
  void resumed_from(const ResumePoint& point);

  /// What is kept after an epoch.
  struct What {
    bool checkpoint = true;
    bool best = false;  ///< this epoch is the best on validation so far: a file of its own
  };
  /// Keeps the epochs so far, and the weights as `what` says. Collective: returns when rank 0 has
  /// written, however slow its disk is: up to ten deadlines.
  /// Errors   Error(data) at rank 0 naming the file and the reason
  void keep(const std::vector<measure::EpochRecord>& epochs, const Counters& counters,
            const ValidationState& validation, What what);

  [[nodiscard]] const std::string& last_checkpoint() const { return last_; }  ///< rank 0; "": none yet

 private:
  [[nodiscard]] bool writes() const;
  void checkpoint(const Counters& counters, const ValidationState& validation);
  void best(const Counters& counters, const ValidationState& validation);
  /// Rank 0, while it is written: says once that it takes longer than the deadline, and gives up after ten of
  /// them.
  void look_at_disk(double seconds, std::int64_t update);

  const Job& job_;
  comm::Communicator& communicator_;
  engine::Engine& engine_;
  Lookahead& lookahead_;
  measure::Ledger& ledger_;
  std::string last_;
  bool slow_ = false;  ///< said of the disk
  /// What this run wrote, and what it went on from in the same directory, oldest first: what it may remove.
  struct Own {
    std::filesystem::path path;
    std::int64_t best_update = 0;  ///< of the best epoch's file that a resume from it needs
  };
  std::vector<Own> own_;
  std::vector<std::int64_t> bests_;  ///< updates of the files of best epochs that this run may remove
};

}  // namespace paceline::train

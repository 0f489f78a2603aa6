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
  void resumed_from(const std::filesystem::path& path);

  /// Keeps the epochs so far, and the weights if `with_checkpoint`. Collective: returns when rank 0 has
  /// written, however slow its disk is: up to ten deadlines.
  /// Errors   Error(data) at rank 0 naming the file and the reason
  void keep(const std::vector<measure::EpochRecord>& epochs, const Counters& counters, bool with_checkpoint);

  [[nodiscard]] const std::string& last_checkpoint() const { return last_; }  ///< rank 0; "": none yet

 private:
  void checkpoint(const Counters& counters);
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
  std::vector<std::filesystem::path> own_;
};

}  // namespace paceline::train

#pragma once

/// Sets the state at the beginning of a worker's training: initial weights, or a checkpoint.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "engine/engine.h"
#include "train/checkpoint/best_weights.h"
#include "train/checkpoint/checkpoint_writer.h"
#include "train/given/job.h"
#include "train/step/lookahead.h"

namespace paceline::train {

/// The restored state, the same on every rank. Trivially copyable, since it is broadcast.
struct Restored {
  Standing standing;
  /// The checkpoint was written before the evaluation of its last epoch, and the run was lost during it. The
  /// evaluation must be repeated first, since later decisions may depend on it.
  bool evaluates_first = false;
};

/// Initial weights, or those of a checkpoint, which rank 0 reads, names in `notes` and broadcasts.
/// Collective.
///
/// Errors   Error(data): as read_checkpoint()
[[nodiscard]] Restored restore(const Job& job, comm::Communicator& communicator, engine::Engine& engine,
                               Lookahead& lookahead, BestWeights& best, CheckpointWriter& writer,
                               std::vector<std::string>& notes);

/// Restores the newest good and undamaged checkpoint of fewer than `before` updates, read by rank 0, and
/// removes later ones. Returns nothing, on every rank, if there is none. Collective.
[[nodiscard]] std::optional<Standing> restore_good(const Job& job, comm::Communicator& communicator,
                                                   engine::Engine& engine, Lookahead& lookahead,
                                                   BestWeights& best, CheckpointWriter& writer,
                                                   std::int64_t before);

}  // namespace paceline::train

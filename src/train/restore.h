#pragma once

/// How a worker's training begins: with first weights, or where a checkpoint left it.

#include <cstdint>
#include <optional>

#include "comm/communicator.h"
#include "engine/engine.h"
#include "train/best_weights.h"
#include "train/checkpoint_writer.h"
#include "train/job.h"
#include "train/lookahead.h"

namespace paceline::train {

/// Where the training stands; the same on every rank. Trivially copyable: it is broadcast.
struct Restored {
  Standing standing;
  /// The checkpoint was written before the evaluation of its last epoch, and the run was lost in it: it comes
  /// first, since what follows may depend on it.
  bool evaluates_first = false;
};

/// First weights, or those of a checkpoint: read by rank 0, the same bytes for all. Collective.
///
/// Errors   Error(data): as read_checkpoint()
[[nodiscard]] Restored restore(const Job& job, comm::Communicator& communicator, engine::Engine& engine,
                               Lookahead& lookahead, BestWeights& best, CheckpointWriter& writer);

/// The newest checkpoint of fewer than `before` updates that is good and whole, read by rank 0; later ones
/// are removed. Nothing, on every rank: there is none. Collective.
[[nodiscard]] std::optional<Standing> restore_good(const Job& job, comm::Communicator& communicator,
                                                   engine::Engine& engine, Lookahead& lookahead,
                                                   BestWeights& best, CheckpointWriter& writer,
                                                   std::int64_t before);

}  // namespace paceline::train

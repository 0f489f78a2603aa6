#pragma once

/// The weights of the epoch that the validation part chose, kept until the test set is read with them.
///
/// Rank 0 holds them in memory; where checkpoints are written they stand in a file too
/// (best_checkpoint_path), from which a resumed training takes them.

#include <vector>

#include "comm/communicator.h"
#include "engine/engine.h"
#include "train/checkpoint.h"

namespace paceline::train {

/// Threads  one, the worker's own
class BestWeights {
 public:
  BestWeights(comm::Communicator& communicator, engine::Engine& engine)
      : communicator_(communicator), engine_(engine) {}

  /// The engine's present weights are the best so far. Requires at rank 0: engine.fetch() was called.
  void keep();
  /// Rank 0: those of `file`, a checkpoint. Errors: as read_weights().
  void read(const std::filesystem::path& file);
  /// Puts them into every rank's engine. Collective.
  void put_back();

 private:
  comm::Communicator& communicator_;
  engine::Engine& engine_;
  std::vector<float> weights_;  ///< rank 0; empty: none yet
};

}  // namespace paceline::train

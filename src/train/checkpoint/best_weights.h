#pragma once

/// BestWeights keeps the weights of the best epoch on validation until the test set is evaluated with them.
///
/// Rank 0 holds them in memory. If checkpoints are written they are in a file too (best_checkpoint_path),
/// from which a resumed training reads them.

#include <vector>

#include "comm/communicator.h"
#include "engine/engine.h"
#include "train/checkpoint/checkpoint.h"

namespace paceline::train {

/// Threads  one, the worker's own
class BestWeights {
 public:
  BestWeights(comm::Communicator& communicator, engine::Engine& engine)
      : communicator_(communicator), engine_(engine) {}

  /// Copies the engine's weights as the best so far. Requires at rank 0: engine.fetch() was called.
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
  std::vector<float> weights_;  ///< rank 0; empty: none yet
};

}  // namespace paceline::train

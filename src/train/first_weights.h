#pragma once

/// The weights that a training begins with.

#include "comm/communicator.h"
#include "engine/engine.h"
#include "train/job.h"

namespace paceline::train {

/// Fills the engine's weights as the model says (graph/initialise.h), and where a layer is whitened, by
/// images spread evenly over the training set. Collective: the same bytes on all ranks.
///
/// Errors   Error(data) when an image cannot be read
void first_weights(const Job& job, comm::Communicator& communicator, engine::Engine& engine);

}  // namespace paceline::train

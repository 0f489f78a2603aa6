#pragma once

/// Sets the initial weights of a training.

#include "comm/communicator.h"
#include "engine/engine.h"
#include "train/given/job.h"

namespace paceline::train {

/// Fills the engine's weights as the model says (graph/initialise.h). Whitened layers use images spread
/// evenly over the training set. Collective: the same bytes on all ranks.
///
/// Errors   Error(data) when an image cannot be read
void first_weights(const Job& job, comm::Communicator& communicator, engine::Engine& engine);

}  // namespace paceline::train

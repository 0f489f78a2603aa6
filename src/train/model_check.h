#pragma once

/// What a model needs in order to be trained with these batches, said before anything is computed.

#include "graph/graph.h"
#include "train/options.h"
#include "train/resolve.h"

namespace paceline::train {

/// Refuses a model without a weight that learns, and one with a batch norm that would take mean and variance
/// of a single value a channel: it would subtract each value from itself and pass nothing on. PyTorch refuses
/// that too.
///
/// Errors   Error(usage): the layer, the sizes, and what to change
void require_trainable(const graph::Graph& graph, const Options& options, const Resolved& resolved);

}  // namespace paceline::train

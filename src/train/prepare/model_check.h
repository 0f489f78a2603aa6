#pragma once

/// Checks, before anything is computed, that a model can be trained with the given batches.

#include "graph/graph.h"
#include "train/given/options.h"
#include "train/given/resolve.h"

namespace paceline::train {

/// Refuses a model without trainable weights, and one with a batch norm over a single value per channel: it
/// would subtract each value from itself and output zero. PyTorch refuses that too.
///
/// Errors   Error(usage): the layer, the sizes, and what to change
void require_trainable(const graph::Graph& graph, const Options& options, const Resolved& resolved);

}  // namespace paceline::train

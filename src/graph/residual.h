#pragma once

/// Residual blocks that begin as the identity.

#include "graph/graph.h"

namespace paceline::graph {

/// Lets the batch norm at the end of every residual block's branch begin with weight 0 (Init::zero), so that
/// each block first passes its input on: of the two inputs of an add that has one, the branch is the one with
/// more layers in front of it. torchvision's zero_init_residual; Goyal et al. 2017, section 5.1.
///
/// Returns how many there are: 0 for a model without such blocks.
int zero_last_gammas(Graph& graph);

}  // namespace paceline::graph

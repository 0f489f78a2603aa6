#pragma once

/// Makes residual blocks start as the identity.

#include "graph/graph.h"

namespace paceline::graph {

/// Sets Init::zero for the batch norm at the end of every residual branch, so that each block first passes
/// its input on (torchvision's zero_init_residual; Goyal et al. 2017, section 5.1). Of the two inputs of an
/// add, the branch is the one with more layers before it.
///
/// Returns the number of such batch norms.
int zero_last_gammas(Graph& graph);

}  // namespace paceline::graph

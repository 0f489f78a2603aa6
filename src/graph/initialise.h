#pragma once

/// Sets initial weights, distributed as in PyTorch. They depend on (seed, parameter) only, so they are the
/// same for any number of workers and any engine.

#include <cstdint>
#include <span>

#include "graph/graph.h"
#include "graph/layout.h"

namespace paceline::graph {

/// Fills the flat array `weights` [layout.elements]; padding becomes zero.
///
/// A convolution before a batch norm: normal with deviation sqrt(2 / (K*R*S)) (He et al. 2015, fan-out, as in
/// torchvision's ResNets). Any other convolution or dense layer: uniform in +-1/sqrt(fan-in), bias too
/// (PyTorch's default, kaiming_uniform with a = sqrt(5)). Batch norm: weight 1, bias 0, running mean 0,
/// variance 1. A layer's `init` replaces these for its weight: zero (also of a batch norm), dirac
/// (torch.nn.init.dirac_ on the first C filters), whiten (random here; whiten() computes it from images
/// later).
void initialise(const Graph& graph, const Layout& layout, std::uint64_t seed, std::span<float> weights);

}  // namespace paceline::graph

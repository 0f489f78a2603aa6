#pragma once

/// Initial weights: what PyTorch gives the same modules, drawn from (seed, parameter) and so the same for any
/// number of workers and any engine.

#include <cstdint>
#include <span>

#include "graph/graph.h"
#include "graph/layout.h"

namespace paceline::graph {

/// Fills the flat array `weights` [layout.elements]; padding becomes zero.
///
/// A convolution that feeds a batch norm: normal with deviation sqrt(2 / (K*R*S)) (He et al. 2015, fan-out;
/// what torchvision's ResNets use). Any other convolution or dense layer: uniform in +-1/sqrt(fan-in), bias
/// too (PyTorch's default, kaiming_uniform with a = sqrt(5)). Batch norm: weight 1, bias 0, running mean 0,
/// variance 1. A layer's `init` replaces these for its weight: zero (of a batch norm too); dirac
/// (torch.nn.init.dirac_ on the first C filters); whiten is left drawn here, and made by whiten() from
/// images.
void initialise(const Graph& graph, const Layout& layout, std::uint64_t seed, std::span<float> weights);

}  // namespace paceline::graph

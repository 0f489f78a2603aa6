#pragma once

/// Sets initial weights, distributed as in PyTorch. They depend on (seed, parameter) only, so they are the
/// same for any number of workers and any engine.

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "graph/layout.h"

namespace paceline::graph {

// Computes first-layer filters that decorrelate the patches of real images (Init::whiten).
//
// Neighbouring pixels are nearly equal, and without whitening a network spends its first epochs on removing
// that correlation. Let E diag(v) E^T be the covariance of the patches, with the largest eigenvalue v[0]
// first. Filter i is then column i of E divided by sqrt(v[i] + 5e-4). After all these filters come their
// negatives, since the ReLU or GELU behind them needs both signs.

/// How many images callers give whiten(): they have millions of patches.
inline constexpr std::int64_t kWhiteningImages = 2048;

/// Whether a convolution of `graph` is initialised by Init::whiten.
[[nodiscard]] bool wants_whitening(const Graph& graph);

/// Computes the weights of every convolution that is initialised by Init::whiten. `images` is an array
/// [count][H][W][C] of images, normalised as for evaluation. The same images give the same bits.
///
/// Threads  computes on the calling thread alone
/// Cost     count * P * Q * (C*R*R)^2 / 2 multiply-adds for P x Q outputs and R x R kernels, such as 0.3 s
///          for 2,048 images of CIFAR-10 and a 2x2 kernel
void whiten(const Graph& graph, const Layout& layout, std::span<const float> images,
            std::span<float> weights);

/// Eigenvalues of a symmetric matrix [n][n], largest first, and eigenvectors, one per row, each of length 1
/// with its largest entry positive. Jacobi's method: accurate to rounding, slow beyond n of some hundreds.
struct Eigen {
  std::vector<double> values;   ///< [n]
  std::vector<double> vectors;  ///< [n][n]
};
[[nodiscard]] Eigen eigen_of_symmetric(std::vector<double> matrix, int n);

/// Sets Init::zero for the batch norm at the end of every residual branch, so that each block first passes
/// its input on (torchvision's zero_init_residual; Goyal et al. 2017, section 5.1). Of the two inputs of an
/// add, the branch is the one with more layers before it.
///
/// Returns the number of such batch norms.
int zero_last_gammas(Graph& graph);

/// Fills the flat array `weights` [layout.elements]; padding becomes zero.
///
/// A convolution before a batch norm: normal with deviation sqrt(2 / (K*R*S)) (He et al. 2015, fan-out, as in
/// torchvision's ResNets). Any other convolution or dense layer: uniform in +-1/sqrt(fan-in), bias too
/// (PyTorch's default, kaiming_uniform with a = sqrt(5)). Batch norm: weight 1, bias 0, running mean 0,
/// variance 1. A layer's `init` replaces these for its weight: zero (also of a batch norm), dirac
/// (torch.nn.init.dirac_ on the first C filters), whiten (random here; whiten() computes it from images
/// later), normal (deviation 0.02, and the bias zero: what PyTorch's trunc_normal_ draws, which cuts at 2, a
/// hundred deviations). Layer norm, group norm: weight 1, bias 0; scale: its `initial`.
void initialise(const Graph& graph, const Layout& layout, std::uint64_t seed, std::span<float> weights);

}  // namespace paceline::graph

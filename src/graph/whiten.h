#pragma once

/// Computes first-layer filters that decorrelate the patches of real images (Init::whiten).
///
/// Neighbouring pixels are nearly equal, and without whitening a network spends its first epochs on removing
/// that correlation. Let E diag(v) E^T be the covariance of the patches, with the largest eigenvalue v[0]
/// first. Filter i is then column i of E divided by sqrt(v[i] + 5e-4). After all these filters come their
/// negatives, since the ReLU or GELU behind them needs both signs.

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "graph/layout.h"

namespace paceline::graph {

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

}  // namespace paceline::graph

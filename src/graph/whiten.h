#pragma once

/// Computes first-layer filters that decorrelate the patches of real images (Init::whiten).
///
/// Neighbouring pixels are nearly equal, and without whitening a network spends its first epochs on removing
/// that correlation. With the patches' covariance E diag(l) E^T, filter i is column i of E divided by
/// sqrt(l_i + 5e-4), the largest l first. The negatives of all filters follow, since a ReLU or GELU behind
/// them needs both signs.

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "graph/layout.h"

namespace paceline::graph {

/// The number of images for whiten(): enough for millions of patches.
inline constexpr std::int64_t kWhiteningImages = 2048;

[[nodiscard]] bool wants_whitening(const Graph& graph);

/// Sets the weight of every convolution with Init::whiten, from `images` [count][H][W][C] normalised as in
/// evaluation. The same images give the same bits; one thread.
///
/// Cost     count * P * Q * (C*R*R)^2 / 2 multiply-adds: 0.3 s for 2,048 images of CIFAR-10 and a 2x2 kernel
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

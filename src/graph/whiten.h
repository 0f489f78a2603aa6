#pragma once

/// Weights of a first convolution under which the patches of real images become uncorrelated (Init::whiten).
///
/// Neighbouring pixels are nearly equal, so a network spends its first epochs on undoing that. With the
/// patches' covariance E diag(l) E^T, filter i is column i of E divided by sqrt(l_i + 5e-4), the largest l
/// first, and after them the negatives: behind a ReLU or GELU both signs are wanted.

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "graph/layout.h"

namespace paceline::graph {

/// Images that whiten() should be given: millions of patches, whatever the image size.
inline constexpr std::int64_t kWhiteningImages = 2048;

[[nodiscard]] bool wants_whitening(const Graph& graph);

/// Sets the weight of every convolution with Init::whiten, from `images` [count][H][W][C] as the network sees
/// them in evaluation. The same bits for the same images; one thread.
///
/// Cost     count * P * Q * (C*R*R)^2 / 2 multiply-adds: 0.3 s for 2,048 images of CIFAR-10 and a 2x2 kernel
void whiten(const Graph& graph, const Layout& layout, std::span<const float> images,
            std::span<float> weights);

/// The eigenvalues of a symmetric matrix [n][n], largest first, and its eigenvectors, one a row, each of
/// length 1 with its largest entry positive. Jacobi's method: slow beyond some hundreds, accurate to
/// rounding.
struct Eigen {
  std::vector<double> values;   ///< [n]
  std::vector<double> vectors;  ///< [n][n]
};
[[nodiscard]] Eigen eigen_of_symmetric(std::vector<double> matrix, int n);

}  // namespace paceline::graph

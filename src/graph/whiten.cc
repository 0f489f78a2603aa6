#include "graph/whiten.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace paceline::graph {
namespace {

/// Prevents directions with hardly any variance from being amplified too much.
constexpr double kEpsilon = 5e-4;
constexpr int kMostSweeps = 100;  ///< Jacobi's method needs about ten

/// The mean of patch * patch^T over all patches that the convolution sees inside the images: [n][n], a patch
/// in the weight's order (channel, row, column).
std::vector<double> patch_covariance(std::span<const float> images, const Shape& shape, int kernel) {
  const int n = shape.channels * kernel * kernel;
  std::vector<double> sums(static_cast<std::size_t>(n) * static_cast<std::size_t>(n));
  std::vector<double> patch(static_cast<std::size_t>(n));
  const auto pixel = [&](std::int64_t image, int y, int x, int c) {
    return images[static_cast<std::size_t>(image * shape.elements() +
                                           (std::int64_t{1} * y * shape.width + x) * shape.channels + c)];
  };
  const auto count = static_cast<std::int64_t>(images.size()) / shape.elements();
  for (std::int64_t image = 0; image < count; ++image)
    for (int y = 0; y + kernel <= shape.height; ++y)
      for (int x = 0; x + kernel <= shape.width; ++x) {
        auto to = patch.begin();
        for (int c = 0; c < shape.channels; ++c)
          for (int r = 0; r < kernel; ++r)
            for (int s = 0; s < kernel; ++s) *to++ = static_cast<double>(pixel(image, y + r, x + s, c));
        for (std::size_t i = 0; i < patch.size(); ++i)
          for (std::size_t j = 0; j <= i; ++j) sums[i * patch.size() + j] += patch[i] * patch[j];
      }
  const double patches =
      static_cast<double>(count) * (shape.height - kernel + 1) * (shape.width - kernel + 1);
  for (std::size_t i = 0; i < patch.size(); ++i)
    for (std::size_t j = 0; j <= i; ++j) sums[j * patch.size() + i] = sums[i * patch.size() + j] /= patches;
  return sums;
}

}  // namespace

bool wants_whitening(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    const auto* conv = node.as<Conv2d>();
    return conv != nullptr && conv->init == Init::whiten;
  });
}

void whiten(const Graph& graph, const Layout& layout, std::span<const float> images,
            std::span<float> weights) {
  const Shape& shape = graph.input_shape();
  base::expects(!images.empty() && static_cast<std::int64_t>(images.size()) % shape.elements() == 0,
                "there are whole images to whiten by");
  for (const Node& node : graph.nodes) {
    const auto* conv = node.as<Conv2d>();
    if (conv == nullptr || conv->init != Init::whiten) continue;
    const int n = shape.channels * conv->kernel * conv->kernel;
    const Eigen eigen = eigen_of_symmetric(patch_covariance(images, shape, conv->kernel), n);
    const int slot = layout.slot_of_parameter[static_cast<std::size_t>(node.parameters.front())];
    float* weight = weights.data() + layout.slots[static_cast<std::size_t>(slot)].offset;
    const int directions = conv->channels / 2;
    for (int i = 0; i < directions; ++i) {
      // Rounding may make the eigenvalue of a direction without variance slightly negative.
      const double scale = 1 / std::sqrt(std::max(0.0, eigen.values[static_cast<std::size_t>(i)]) + kEpsilon);
      for (int j = 0; j < n; ++j) {
        const double value = scale * eigen.vectors[static_cast<std::size_t>(i * n + j)];
        weight[i * n + j] = static_cast<float>(value);
        weight[(directions + i) * n + j] = static_cast<float>(-value);
      }
    }
  }
}

Eigen eigen_of_symmetric(std::vector<double> a, int size) {
  const auto n = static_cast<std::size_t>(size);
  base::expects(a.size() == n * n, "the matrix is square");
  std::vector<double> v(n * n);  // rows: the directions found so far
  for (std::size_t i = 0; i < n; ++i) v[i * n + i] = 1;
  const double scale = std::sqrt(std::inner_product(a.begin(), a.end(), a.begin(), 0.0));
  const auto rest = [&] {
    double sum = 0;
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t q = 0; q < p; ++q) sum += a[p * n + q] * a[p * n + q];
    return std::sqrt(sum);
  };
  for (int sweep = 0; sweep < kMostSweeps && rest() > 1e-15 * scale; ++sweep)
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t q = p + 1; q < n; ++q) {
        if (a[p * n + q] == 0) continue;
        // The rotation of p and q that makes their common entry zero (Golub and Van Loan, 8.5).
        const double tau = (a[q * n + q] - a[p * n + p]) / (2 * a[p * n + q]);
        const double t = std::copysign(1.0, tau) / (std::abs(tau) + std::sqrt(1 + tau * tau));
        const double c = 1 / std::sqrt(1 + t * t), s = t * c;
        for (std::size_t k = 0; k < n; ++k) {  // columns
          const double kp = a[k * n + p], kq = a[k * n + q];
          a[k * n + p] = c * kp - s * kq;
          a[k * n + q] = s * kp + c * kq;
        }
        for (std::size_t k = 0; k < n; ++k) {  // rows
          const double pk = a[p * n + k], qk = a[q * n + k];
          a[p * n + k] = c * pk - s * qk;
          a[q * n + k] = s * pk + c * qk;
          const double vp = v[p * n + k], vq = v[q * n + k];
          v[p * n + k] = c * vp - s * vq;
          v[q * n + k] = s * vp + c * vq;
        }
      }
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t i, std::size_t j) { return a[i * n + i] > a[j * n + j]; });
  Eigen eigen;
  for (const std::size_t i : order) {
    eigen.values.push_back(a[i * n + i]);
    const auto begin = v.begin() + static_cast<std::ptrdiff_t>(i * n),
               end = begin + static_cast<std::ptrdiff_t>(n);
    const double largest =
        *std::max_element(begin, end, [](double x, double y) { return std::abs(x) < std::abs(y); });
    std::transform(begin, end, std::back_inserter(eigen.vectors),
                   [&](double x) { return std::copysign(1.0, largest) * x; });
  }
  return eigen;
}

}  // namespace paceline::graph

#include "graph/initialise.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/error.h"
#include "base/rng.h"

namespace paceline::graph {
namespace {

/// Prevents directions with hardly any variance from being amplified too much.
constexpr double kEpsilon = 5e-4;
constexpr int kMostSweeps = 100;  ///< Jacobi's method needs about ten
constexpr float kNormalDeviation = 0.02f;

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

std::vector<bool> nodes_feeding_batch_norm(const Graph& graph) {
  std::vector<bool> feeds(graph.nodes.size(), false);
  for (const Node& node : graph.nodes)
    if (node.as<BatchNorm>()) feeds[static_cast<std::size_t>(node.inputs.front())] = true;
  return feeds;
}

/// Number of elements that are summed into one output.
std::int64_t fan_in(const Graph& graph, const Node& owner) {
  const Parameter& weight = graph.parameters[static_cast<std::size_t>(owner.parameters.front())];
  return weight.elements() / weight.shape.front();
}

Init init_of_node(const Node& node) {
  if (const auto* conv = node.as<Conv2d>()) return conv->init;
  const auto* dense = node.as<Dense>();
  return dense != nullptr ? dense->init : Init::usual;
}

/// The first value of a norm's weight, or of a scale's.
double first_factor(const Node& node) {
  if (const auto* scale = node.as<Scale>()) return scale->initial;
  const auto* norm = node.as<BatchNorm>();
  return norm != nullptr && norm->init == Init::zero ? 0 : 1;
}

void draw_uniformly(std::span<float> part, std::int64_t fan_in, base::Rng& rng) {
  const auto bound = static_cast<float>(1 / std::sqrt(static_cast<double>(fan_in)));
  std::ranges::generate(part, [&] { return bound * (2 * rng.uniform() - 1); });
}

/// weight [K, C, R, S]: filter i is 1 in the middle of channel i and 0 elsewhere, as long as both exist.
void pass_on(const Parameter& parameter, std::span<float> weight) {
  const auto length = [&](std::size_t i) { return static_cast<std::size_t>(parameter.shape[i]); };
  const std::size_t filters = length(0), channels = length(1), height = length(2), width = length(3);
  const std::size_t taps = height * width, middle = height / 2 * width + width / 2;
  for (std::size_t i = 0; i < std::min(filters, channels); ++i) {
    std::ranges::fill(weight.subspan(i * channels * taps, channels * taps), 0.0f);
    weight[i * channels * taps + i * taps + middle] = 1;
  }
}

}  // namespace

bool wants_whitening(const Graph& graph) {
  return std::ranges::any_of(graph.nodes,
                             [](const Node& node) { return init_of_node(node) == Init::whiten; });
}

void whiten(const Graph& graph, const Layout& layout, std::span<const float> images,
            std::span<float> weights) {
  const Shape& shape = graph.input_shape();
  base::expects(!images.empty() && static_cast<std::int64_t>(images.size()) % shape.elements() == 0,
                "there are whole images to whiten by");
  for (const Node& node : graph.nodes) {
    const auto* conv = node.as<Conv2d>();
    if (conv == nullptr || conv->init != Init::whiten) continue;
    const int kernel = conv->kernel.height, n = shape.channels * kernel * kernel;
    const Eigen eigen = eigen_of_symmetric(patch_covariance(images, shape, kernel), n);
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
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t i) { return a[i * n + i]; });
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

int zero_last_gammas(Graph& graph) {
  std::vector<int> depth(graph.nodes.size(), 0);  // length of the longest path from the image
  int changed = 0;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    for (const int input : node.inputs)
      depth[i] = std::max(depth[i], depth[static_cast<std::size_t>(input)] + 1);
    if (node.as<Add>() == nullptr) continue;
    const auto depth_of = [&](int input) { return depth[static_cast<std::size_t>(input)]; };
    const int branch = *std::ranges::max_element(node.inputs, {}, depth_of);
    auto* norm = std::get_if<BatchNorm>(&graph.nodes[static_cast<std::size_t>(branch)].op);
    if (norm == nullptr) continue;
    norm->init = Init::zero;
    ++changed;
  }
  return changed;
}

void initialise(const Graph& graph, const Layout& layout, std::uint64_t seed, std::span<float> weights) {
  base::expects(static_cast<std::int64_t>(weights.size()) == layout.elements,
                "the array has the layout's size");
  std::ranges::fill(weights, 0.0f);
  const std::vector<bool> feeds_norm = nodes_feeding_batch_norm(graph);
  for (const Slot& slot : layout.slots) {
    const Parameter& parameter = graph.parameters[static_cast<std::size_t>(slot.parameter)];
    const Node& owner = graph.nodes[static_cast<std::size_t>(parameter.node)];
    const auto part =
        weights.subspan(static_cast<std::size_t>(slot.offset), static_cast<std::size_t>(slot.elements));
    base::Rng rng(seed, base::Purpose::weight, static_cast<std::uint64_t>(slot.parameter));
    switch (parameter.role) {
      case Role::weight:
        if (owner.as<ClassToken>() != nullptr) break;
        if (init_of_node(owner) == Init::zero) break;
        if (init_of_node(owner) == Init::normal || owner.as<Position>() != nullptr) {  // as torchvision
          std::ranges::generate(part, [&] { return kNormalDeviation * rng.normal(); });
          break;
        }
        if (const auto* conv = owner.as<Conv2d>();
            conv && feeds_norm[static_cast<std::size_t>(parameter.node)]) {
          const double fan_out = static_cast<double>(conv->channels * conv->kernel.product());
          const auto deviation = static_cast<float>(std::sqrt(2 / fan_out));
          std::ranges::generate(part, [&] { return deviation * rng.normal(); });
        } else {
          draw_uniformly(part, fan_in(graph, owner), rng);
        }
        if (init_of_node(owner) == Init::dirac) pass_on(parameter, part);
        break;
      case Role::bias:
        if (init_of_node(owner) != Init::normal) draw_uniformly(part, fan_in(graph, owner), rng);
        break;
      case Role::norm_weight:
        std::ranges::fill(part, static_cast<float>(first_factor(owner)));
        break;
      case Role::running_var:
        std::ranges::fill(part, 1.0f);
        break;
      case Role::norm_bias:
      case Role::running_mean:
        break;
    }
  }
}

}  // namespace paceline::graph

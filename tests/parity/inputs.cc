#include "parity/inputs.h"

#include <algorithm>
#include <cmath>

#include "base/rng.h"

namespace paceline::parity {
namespace {

using base::Purpose;
using base::Rng;

/// Streams of one seed: the upper half of the first coordinate.
enum class Of : std::uint64_t { parameters = 1, patterns, labels, noise };
Rng stream(std::uint64_t seed, Of of, std::uint64_t a, std::uint64_t b = 0) {
  return {seed, Purpose::test, static_cast<std::uint64_t>(of) << 32 | a, b};
}

/// Mean 0 and variance 1, nearly normal. (A logarithm or a cosine has other bits on another machine.)
float bell(Rng& rng) {
  const double sum = static_cast<double>(rng.uniform()) + static_cast<double>(rng.uniform()) +
                     static_cast<double>(rng.uniform());
  return static_cast<float>(2 * sum - 3);
}

/// The inputs of one output: of a weight all dimensions but the first.
std::int64_t fan_in(const std::vector<std::int64_t>& shape) {
  std::int64_t product = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) product *= shape[i];
  return product;
}

/// SplitMix64 of `index`: its bits are the signs of the projections.
std::uint64_t signs_of(std::uint64_t index) {
  std::uint64_t z = (index + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

}  // namespace

std::vector<float> initial_values(const graph::Graph& graph, int index, std::uint64_t seed) {
  using graph::Role;
  const graph::Parameter& parameter = graph.parameters[static_cast<std::size_t>(index)];
  std::vector<float> values(static_cast<std::size_t>(parameter.elements()));
  // A bias has the bound of the weight of its op.
  const graph::Parameter* of_bound = &parameter;
  for (const int sibling : graph.nodes[static_cast<std::size_t>(parameter.node)].parameters)
    if (graph.parameters[static_cast<std::size_t>(sibling)].role == Role::weight)
      of_bound = &graph.parameters[static_cast<std::size_t>(sibling)];
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in(of_bound->shape)));
  Rng rng = stream(seed, Of::parameters, static_cast<std::uint64_t>(index));
  for (float& value : values) {
    switch (parameter.role) {
      case Role::weight:
      case Role::bias:
        value = static_cast<float>(bound * (2 * rng.uniform_f64() - 1));
        break;
      case Role::norm_weight:
        value = static_cast<float>(1 + 0.2 * static_cast<double>(bell(rng)));
        break;
      case Role::norm_bias:
        value = static_cast<float>(0.2 * static_cast<double>(bell(rng)));
        break;
      case Role::running_mean:
        value = 0;
        break;
      case Role::running_var:
        value = 1;
        break;
    }
  }
  return values;
}

Batch batch_of(const graph::Shape& shape, int classes, int step, const std::vector<int>& redraws,
               std::uint64_t seed) {
  const auto elements = static_cast<std::size_t>(shape.elements());
  Batch batch;
  Rng labels = stream(seed, Of::labels, static_cast<std::uint64_t>(step));
  for (std::size_t n = 0; n < redraws.size(); ++n) {
    batch.labels.push_back(static_cast<std::int32_t>(labels.below(static_cast<std::uint32_t>(classes))));
    Rng pattern = stream(seed, Of::patterns, static_cast<std::uint64_t>(batch.labels.back()));
    Rng noise = stream(seed, Of::noise, static_cast<std::uint64_t>(step) << 16 | n,
                       static_cast<std::uint64_t>(redraws[n]));
    for (std::size_t i = 0; i < elements; ++i) batch.images.push_back(bell(pattern) + bell(noise));
  }
  return batch;
}

template <typename T>
Digest digest_of(const T* values, std::int64_t count) {
  Digest digest;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<double>(values[i]);
    digest.norm += value * value;
    std::uint64_t signs = signs_of(static_cast<std::uint64_t>(i));
    for (double& projection : digest.projections) {
      projection += (signs & 1) != 0 ? value : -value;
      signs >>= 1;
    }
  }
  digest.norm = std::sqrt(digest.norm);
  return digest;
}
template Digest digest_of(const float* values, std::int64_t count);
template Digest digest_of(const double* values, std::int64_t count);

}  // namespace paceline::parity

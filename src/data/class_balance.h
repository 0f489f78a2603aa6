#pragma once

/// Training on classes of very different sizes: how uneven they are, and weights of classes in the loss. The
/// order in which every class comes equally often is BalancedOrder (loader.h).

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace paceline::data {

/// The number of samples of each class of `set`.
[[nodiscard]] std::vector<std::int64_t> class_sizes(const Dataset& set, int classes);

/// How many times as many samples the largest class has as the smallest of those that have any; at least 1.
[[nodiscard]] double unevenness(std::span<const std::int64_t> sizes);
/// From this unevenness on, `init` and `data info` name the remedies (docs/uneven.md says why).
inline constexpr double kUneven = 4;

/// The weight of each class of `source` in the loss: `given` is "balanced" or a file of lines "class,weight".
/// Balanced weights are n / (classes * samples of the class), as scikit-learn computes them. The weights of a
/// file are scaled so that their mean over the training samples is 1, which that of balanced ones is anyway:
/// only ratios of weights matter, as in PyTorch (docs/decisions/class-weights.md).
///
/// Errors   Error(data) naming file and line: no two cells, an unknown class (with the nearest name), a class
///          that comes twice or not at all, a weight that is no number above 0
[[nodiscard]] std::vector<double> class_weights(const std::string& given, const Source& source);

/// What BalancedOrder does to a set, for people: "an epoch has 9984 draws, about 998 of each of 10
/// classes; a sample of 'owl' (20) comes 49.9 times in it, one of 'cat' (5000) 0.2 times".
[[nodiscard]] std::string balanced_sentence(const Source& source, std::int64_t positions);

}  // namespace paceline::data

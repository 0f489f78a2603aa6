#pragma once

/// Training on classes of very different sizes: weights of classes in the loss, and an order of samples in
/// which every class comes equally often.

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/loader.h"

namespace paceline::data {

/// The number of samples of each class of `set`.
[[nodiscard]] std::vector<std::int64_t> class_sizes(const Dataset& set, int classes);

/// The weight of each class of `source` in the loss: `given` is "balanced" or a file of lines "class,weight".
/// Balanced weights are n / (classes * samples of the class), as scikit-learn computes them. The weights of a
/// file are scaled so that their mean over the training samples is 1, which that of balanced ones is anyway:
/// only ratios of weights matter, as in PyTorch (docs/decisions/class-weights.md).
///
/// Errors   Error(data) naming file and line: no two cells, an unknown class (with the nearest name), one
/// that
///          comes twice, a weight that is no number above 0; a class without a line
[[nodiscard]] std::vector<double> class_weights(const std::string& given, const Source& source);

/// An endless order of samples in rounds. In a round every class that has samples comes once, in an order
/// drawn for that round; inside a class each sample comes once before the first comes again, in an order
/// drawn for each of these cycles. So of any positions in a row two classes have equally many, to within two;
/// from the beginning of a training, to within one.
///
/// Epoch e has the places e * positions ... (e + 1) * positions - 1 of this order, and the next epoch
/// continues where it ends: no sample is passed over. The sample of a place is a function of seed and place
/// alone.
///
/// Cost     8 bytes a sample; index() is O(1)
/// Threads  index() from any number at once
class BalancedOrder {
 public:
  /// `positions`: samples of an epoch that are trained on, whole global batches.
  BalancedOrder(const Dataset& set, int classes, std::uint64_t seed, std::int64_t positions);
  [[nodiscard]] std::int64_t index(std::int64_t epoch, std::int64_t position) const;

  [[nodiscard]] static std::int64_t planned_bytes(const Dataset& set) {
    return set.size() * static_cast<std::int64_t>(sizeof(std::int64_t));
  }

 private:
  struct OfClass {
    std::int64_t first = 0;  ///< in members_
    Sampler order;           ///< of its samples, for each cycle
  };
  std::vector<std::int64_t> members_;  ///< indices of all samples, class by class
  std::vector<OfClass> classes_;       ///< those that have samples
  Sampler turns_;                      ///< of these classes, for each round
  std::int64_t positions_;
};

/// What the balanced order does to a set, for people: "an epoch has 9984 draws, about 998 of each of 10
/// classes; a sample of 'owl' (20) comes 49.9 times in it, one of 'cat' (5000) 0.2 times".
[[nodiscard]] std::string balanced_sentence(const Source& source, std::int64_t positions);

}  // namespace paceline::data

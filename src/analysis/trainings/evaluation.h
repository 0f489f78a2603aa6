#pragma once

/// Computes the figures of an evaluated checkpoint: accuracies with intervals, by class and in total, and
/// confused classes.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/record.h"

namespace paceline::analysis {

/// A proportion with its 95 % interval.
struct Proportion {
  double value = 0, low = 0, high = 1;
};
/// `hits` of `of`, with Wilson's score interval, which stays within [0, 1] and has the right coverage also
/// near 0 and 1 and for few samples.
///
/// Requires  0 <= hits <= of, of > 0
/// Source    Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22, 1927
[[nodiscard]] Proportion wilson(std::int64_t hits, std::int64_t of);

struct ClassFigures {
  std::string name;
  std::int64_t samples = 0;    ///< of this class
  std::int64_t predicted = 0;  ///< samples predicted as this class, rightly or not
  std::int64_t correct = 0;
  std::optional<Proportion> recall;     ///< correct / samples: the class's accuracy; none without samples
  std::optional<Proportion> precision;  ///< correct / predicted
};

/// Samples of one class predicted as another.
struct Confusion {
  std::size_t label = 0, predicted = 0;
  std::int64_t samples = 0;
};

struct Evaluation {
  const measure::EvaluationRecord* record = nullptr;
  Proportion top_1, top_5;
  std::vector<ClassFigures> classes;  ///< in the order of labels
  std::vector<Confusion> confusions;  ///< the most frequent first, none of 0
  std::string contradiction;          ///< why the counts cannot be from one evaluation; "" if they can
};

/// Lifetime  refers to `record`
[[nodiscard]] Evaluation evaluation(const measure::EvaluationRecord& record);

}  // namespace paceline::analysis

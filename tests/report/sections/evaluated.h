#pragma once

/// A record of `paceline evaluate`, for tests of sections.

#include <cstdint>
#include <string>
#include <vector>

#include "measure/record.h"

namespace paceline::report {

/// Ten images of each of `classes`: eight right, two taken for the next class. Two of the mistakes are
/// listed.
inline measure::Record evaluated(int classes) {
  measure::Record record;
  record.kind = "evaluate";
  record.data.test_samples = 10 * classes;
  auto& evaluation = record.evaluation.emplace();
  evaluation.checkpoint = "best.safetensors";
  evaluation.samples = evaluation.reads = 10 * classes;
  evaluation.confusion.assign(static_cast<std::size_t>(classes),
                              std::vector<std::int64_t>(static_cast<std::size_t>(classes), 0));
  for (int i = 0; i < classes; ++i) {
    evaluation.classes.push_back("class" + std::to_string(i));
    const auto at = static_cast<std::size_t>(i);
    evaluation.confusion[at][at] = 8;
    evaluation.confusion[at][(at + 1) % static_cast<std::size_t>(classes)] += 2;
  }
  evaluation.correct = evaluation.correct_in_5 = 8 * classes;
  evaluation.mistakes = {{.index = 3, .path = "cats/17.png", .label = 0, .predicted = 1, .probability = 0.99},
                         {.index = 4, .path = {}, .label = 1, .predicted = 0, .probability = 0.5}};
  return record;
}

}  // namespace paceline::report

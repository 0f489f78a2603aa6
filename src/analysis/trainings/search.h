#pragma once

/// Computes the result of a search over hyper-parameters: its configurations by validation accuracy, which of
/// them tie with the best, and the test figures of the chosen one.
///
/// The figure of a configuration is the mean over seeds of its best epoch's validation accuracy. Its standard
/// error combines the counting error of the validation set with the spread over seeds. A configuration that
/// was dropped after e epochs is compared with the best one's figure after e epochs. A difference below its
/// own standard error is noise: the two tie.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/trainings/converge.h"
#include "measure/ranking.h"
#include "measure/record.h"

namespace paceline::analysis {

struct SearchTrial {
  measure::Candidate candidate;
  double standard_error = 0;
  std::int64_t epochs = 0;            ///< for which it was trained
  double training_s = 0;              ///< of all its seeds, without evaluation
  bool dropped = false;               ///< before the others ended
  std::optional<Difference> to_best;  ///< at equal epochs; none for the best itself, and if it failed
  [[nodiscard]] bool has_failed() const { return !candidate.failure.empty(); }
  [[nodiscard]] bool ties() const { return to_best && to_best->is_noise(); }
};

struct SearchResult {
  std::string subject;                    ///< "resnet8-cifar on cifar10": tells it from other searches
  std::vector<SearchTrial> trials;        ///< the best first, failed ones last
  const measure::Record* best = nullptr;  ///< its seed with the best figure; null: all failed
  std::int64_t validation_samples = 0;
  int seeds = 0;                            ///< maximum over the configurations
  std::int64_t epochs_trained = 0;          ///< of all trainings together
  std::int64_t epochs_of_grid = 0;          ///< if each had been trained as long as the best
  const measure::Record* tested = nullptr;  ///< the chosen one's evaluation; null: not yet
  long stopped = 0;                         ///< trainings that were stopped or not begun
};

/// The searches among `records`: one for each data set and model, in the order of the records, since
/// validation accuracies of different ones cannot be compared. A search that varies the model names it in its
/// configurations, and is one search. Only searches with a figure or a failure.
///
/// Lifetime  refers to `records`
[[nodiscard]] std::vector<SearchResult> searches(std::span<const measure::Record> records);

}  // namespace paceline::analysis

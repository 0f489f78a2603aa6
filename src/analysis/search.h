#pragma once

/// What a search found: its configurations in the order of their validation accuracy, which of them tie with
/// the best, and what the chosen one gives on the test set.
///
/// The figure of a configuration is the mean over seeds of its best epoch's validation accuracy; its standard
/// error joins the counting error of the validation part with the spread over seeds. One that was dropped
/// after e epochs is compared with what the best had after as many. A difference below its own standard error
/// is noise: the two tie.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/converge.h"
#include "measure/ranking.h"
#include "measure/record.h"

namespace paceline::analysis {

struct SearchTrial {
  measure::Candidate candidate;
  double standard_error = 0;
  std::int64_t epochs = 0;            ///< that it was trained for
  double training_s = 0;              ///< of all its seeds, without evaluation
  bool dropped = false;               ///< before the others ended
  std::optional<Difference> to_best;  ///< at equal epochs; none for the best itself and where it failed
  [[nodiscard]] bool has_failed() const { return !candidate.failure.empty(); }
  [[nodiscard]] bool ties() const { return to_best && to_best->is_noise(); }
};

struct SearchResult {
  std::string subject;                    ///< "resnet8-cifar on cifar10": what tells it from another search
  std::vector<SearchTrial> trials;        ///< the best first, failed ones last
  const measure::Record* best = nullptr;  ///< of its seeds the one with the best figure; null: all failed
  std::int64_t validation_samples = 0;
  int seeds = 0;                            ///< the most of a configuration
  std::int64_t epochs_trained = 0;          ///< of all trainings together
  std::int64_t epochs_of_grid = 0;          ///< had each been trained as long as the best
  const measure::Record* tested = nullptr;  ///< the chosen one's evaluation; null: not yet
  long stopped = 0;                         ///< trainings that were stopped, or not begun
};

/// Of the records of kind "search" among `records`: one for each data set and model, in the order of the
/// records, since validation accuracies of two of them are of different questions. A search that varies the
/// model names it in its configurations, and is one. None where there are none with a figure or a failure.
/// Lifetime  looks into `records`
[[nodiscard]] std::vector<SearchResult> searches(std::span<const measure::Record> records);

}  // namespace paceline::analysis

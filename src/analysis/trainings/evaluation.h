#pragma once

/// Computes the figures of an evaluated checkpoint: accuracies with intervals, by class and in total, and
/// confused classes.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/trainings/converge.h"
#include "measure/record.h"
#include "measure/statistics.h"

namespace paceline::analysis {

// Computes the result of a search over hyper-parameters: its configurations by validation accuracy, which of
// them tie with the best, and the test figures of the chosen one.
//
// The figure of a configuration is the mean over seeds of its best epoch's validation accuracy. Its standard
// error combines the counting error of the validation set with the spread over seeds. A configuration that
// was dropped after e epochs is compared with the best one's figure after e epochs. A difference below its
// own standard error is noise: the two tie.

struct SearchTrial {
  measure::Candidate candidate;
  double standard_error = 0;
  std::int64_t epochs = 0;  ///< for which it was trained
  double training_s = 0;    ///< of all its seeds, without evaluation
  bool dropped = false;     ///< before the others ended
  /// Training less validation accuracy at the best epoch, mean over seeds: how far it generalises less well.
  std::optional<double> gap;
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

/// The configurations of a search by two of its options.
struct SearchGrid {
  std::string row_option, column_option;        ///< "local-batch", "lr"
  std::string others;                           ///< the same in all of it: "optimizer sgd"; may be empty
  std::vector<std::string> rows, columns;       ///< values, numbers in their order
  std::vector<const SearchTrial*> trials = {};  ///< [rows][columns]; null: not searched
};
/// One grid for each combination of the other options; none if fewer than two options vary. Batch and
/// learning rate are the axes where both vary, else the first two options.
///
/// Lifetime  refers to `result`
[[nodiscard]] std::vector<SearchGrid> grids(const SearchResult& result);

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

/// The mean of independent proportions. Its interval is joined from theirs by MOVER: each end is as far from
/// the mean as the root of the sum of squared distances of their ends, divided by their number.
///
/// Requires  one proportion at least
/// Source    Zou and Donner, "Construction of confidence limits about effect measures: a general approach",
///           Statistics in Medicine 27, 2008
[[nodiscard]] Proportion mean_of_proportions(std::span<const Proportion> proportions);

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
  /// The mean of the recalls of the classes that have samples, in which all of these count equally.
  Proportion balanced;
  std::vector<ClassFigures> classes;  ///< in the order of labels
  std::vector<Confusion> confusions;  ///< the most frequent first, none of 0
  std::string contradiction;          ///< why the counts cannot be from one evaluation; "" if they can
};

/// Lifetime  refers to `record`
[[nodiscard]] Evaluation evaluation(const measure::EvaluationRecord& record);

}  // namespace paceline::analysis

#pragma once

/// Computes medians, intervals and errors from raw samples, and ranks the trainings of a search. Pure
/// functions.

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/record.h"

namespace paceline::measure {

// Ranks the trainings of a search by their validation figures. The search uses this order to drop
// candidates, its report to name the best.

/// A training's best figure on the validation set.
struct ValidationFigure {
  double accuracy = 0, loss = 0;
  std::int64_t epoch = 0;  ///< from 1
  std::int64_t updates = 0;
};
/// The best figure within the first `epochs` of the training; none if nothing was validated. Of equal
/// accuracies the lower loss wins, then the earlier epoch.
[[nodiscard]] std::optional<ValidationFigure> best_validated(
    const Record& record, std::int64_t epochs = std::numeric_limits<std::int64_t>::max());

/// A configuration with all its seeds.
struct Candidate {
  std::string name;                    ///< Record::variant
  std::vector<const Record*> records;  ///< the longest of each seed, in the order of the records
  /// How far it was trained, in epochs: the minimum over its seeds. A seed that was stopped early is complete
  /// and counts as far as the longest of the others.
  std::int64_t reached = 0;
  std::vector<double> accuracies;  ///< best on validation, one per seed
  double accuracy = 0, loss = 0;   ///< their means; meaningless if it failed
  std::string failure;             ///< why a seed has no figure; such a candidate ranks last
};
/// One candidate per variant in `records`, in their order. `epochs`: use only the first epochs' figures.
[[nodiscard]] std::vector<Candidate> candidates(
    std::span<const Record* const> records, std::int64_t epochs = std::numeric_limits<std::int64_t>::max());

/// Sorts, the best first: trained for longest (it was kept before), then the highest mean accuracy, then the
/// lowest mean loss. Equal candidates keep their order.
void rank(std::vector<Candidate>& candidates);

/// Whether `other` cannot be told from the better `best`: its mean accuracy on `samples` validation images is
/// lower by at most the standard error of the difference.
///
/// Requires  neither has failed, samples > 0
[[nodiscard]] bool ties_with(const Candidate& best, const Candidate& other, std::int64_t samples);

/// The candidate's training with the best figure; of equal ones the first.
///
/// Requires  it has not failed
[[nodiscard]] const Record& best_record(const Candidate& candidate);

/// The fewest samples of one run whose extremes enclose the median with at least 95 %.
inline constexpr int kFewestForInterval = 6;

/// A figure as tables show it. With one sample low = high = median and n = 1; tables then print no interval
/// and say so.
struct Estimate {
  double median = 0;
  double low = 0;  ///< 95 % interval of the median (order statistics, binomial; for n < 6 the extremes)
  double high = 0;
  int n = 0;
  bool is_too_few = false;  ///< fewer than kFewestForInterval steps of one run: no interval is shown
};

[[nodiscard]] double quantile(std::span<const double> samples,
                              double q);  ///< linear between order statistics
[[nodiscard]] Estimate estimate(std::span<const double> samples);
[[nodiscard]] double mean(std::span<const double> samples);
[[nodiscard]] double standard_deviation(std::span<const double> samples);  ///< n - 1; 0 for fewer than two

/// Standard error of an accuracy `p` counted on `samples` images, combined with the spread over seeds:
/// sqrt(p(1-p)/samples + variance(seeds)/n).
[[nodiscard]] double accuracy_standard_error(std::span<const double> accuracies, long samples);

/// Student's t: the value below which a share `probability` lies. `degrees` may be a fraction, and infinite.
///
/// Requires  0.5 <= probability < 1, degrees >= 1
/// Cost      some 40 us
[[nodiscard]] double student_quantile(double probability, double degrees);

/// The number of estimated standard errors that chance exceeds as rarely as two known ones (4.6 %): 2 for a
/// known error, 4.5 for an error estimated with 2 degrees of freedom, as from two pairs of runs. `degrees` is
/// at least 1, infinite for a known error.
[[nodiscard]] double as_rare_as_two_errors(double degrees);

}  // namespace paceline::measure

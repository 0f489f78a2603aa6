#pragma once

/// Computes what a larger batch costs in accuracy, and what each remedy recovers.
///
/// Variants are compared at equal epochs, and their updates are shown. A difference below its own standard
/// error is noise. The standard error combines the counting error of the test set, sqrt(p(1-p)/n), with the
/// spread over seeds. The figure of a variant is the mean over its seeds at the last epoch, never the best of
/// them. A seed gives the same bits however often it is trained, so it counts once. A repeat that ended
/// before the others is not part of a mean at their last epoch.

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/compare/cell.h"
#include "analysis/compare/comparability.h"
#include "analysis/trainings/claim.h"

namespace paceline::analysis {

/// A difference of two accuracies.
struct Difference {
  double value = 0;           ///< other - baseline
  double standard_error = 0;  ///< of the difference
  /// Degrees of freedom of the standard error: infinite for the test set, k - 1 for the spread over k seeds
  /// of each variant, combined by Welch's formula.
  double degrees = std::numeric_limits<double>::infinity();
  bool one_seed = false;      ///< on either side; the error then contains the test set's part only
  bool of_survivors = false;  ///< some trainings of the better variant failed, so its mean is over the rest
  [[nodiscard]] bool is_noise() const;  ///< |value| below one standard error
  [[nodiscard]] bool is_clear() const;  ///< |value| above two standard errors, or above more of them if there
                                        ///< are few seeds (as_rare_as_two_errors)
  /// "noise", "weak evidence" or "clear". A difference of one seed is never clear, since the spread over
  /// seeds is unknown; neither is an advantage of a variant with failed seeds.
  [[nodiscard]] const char* word() const;
};
[[nodiscard]] Difference difference(double baseline, double baseline_error, double other, double other_error);

/// A seed whose training failed and did not succeed later.
struct FailedSeed {
  std::string seed;  ///< "": not recorded
  std::string reason;
};

struct Variant {
  const Cell* cell = nullptr;
  const measure::Record* record = nullptr;  ///< the record with the accuracy; of several, the last
  /// The records of the mean: one for each seed, all with equally many updates.
  std::vector<const measure::Record*> records;
  int same_seed = 0;  ///< repeats left out because another of their seed is in `records`
  int cut_short = 0;  ///< repeats left out because they ended before the others
  std::string name;
  double epochs = 0;  ///< 0.5 for half an epoch
  std::int64_t updates = 0;
  int seeds = 0;
  /// Further seeds whose training failed, for example with a loss that is not finite.
  std::vector<FailedSeed> failures;
  [[nodiscard]] int failed() const { return static_cast<int>(failures.size()); }
  double accuracy = 0;  ///< mean over seeds, last epoch
  double standard_error = 0;
  double seed_variance = 0;  ///< the part of standard_error^2 due to the spread over seeds
  std::optional<double> test_loss;
  double training_s = 0;  ///< of the last seed, without evaluation
  double epoch_s = 0;     ///< median over its whole epochs
  /// false: there was no whole epoch; epoch_s is estimated from the trained part.
  bool epoch_measured = true;
  double peak_lr = 0;
  Verdict verdict;                        ///< against the baseline
  std::optional<Difference> to_baseline;  ///< empty for the baseline itself, and if not comparable
  std::optional<Claim> claim;             ///< of being no worse than it; empty also with too few seeds
  std::optional<std::size_t> large;       ///< the variant of the same global batch without remedy
  std::optional<Difference> to_large;     ///< difference from `large`
  std::optional<double> given_back;  ///< to_large / what the large batch lost; only if that loss is not noise
};

[[nodiscard]] Difference difference(const Variant& baseline, const Variant& other);

/// The accuracy of a cell's trainings, without a name and without comparisons. Empty if no test accuracy was
/// measured.
[[nodiscard]] std::optional<Variant> variant_of(const Cell& cell);

struct Convergence {
  std::vector<Variant> variants;               ///< in the records' order; those with a test accuracy
  std::optional<std::size_t> baseline, large;  ///< the first larger batch with the baseline's own rule
  /// The remedy that recovers most of the loss of `large`, if any does, followed by those whose difference
  /// from it is noise.
  std::vector<std::size_t> give_back_most;
  std::vector<std::string> missing;  ///< variants without accuracy, and why
  double margin = kMargin;           ///< of the claims
};

/// Settings in which a variant differs from the baseline, besides the batch and the workers: "bn sync, warmup
/// 1". The variant's name need not contain all of them.
[[nodiscard]] std::string changed_settings(const measure::Record& baseline, const measure::Record& variant);

/// Compares all trainings of `converge`, with those of `train` on the same model and data. Without
/// `converge`, compares several trainings of `train`: several configurations, or one with several seeds.
/// Empty if there are none. `margin`: of the claims.
[[nodiscard]] std::optional<Convergence> convergence(std::span<const Cell> cells, double margin = kMargin);

}  // namespace paceline::analysis

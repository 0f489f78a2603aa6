#pragma once

/// What a larger batch costs in accuracy, and what each remedy recovers.
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

#include "analysis/cell.h"
#include "analysis/comparability.h"

namespace paceline::analysis {

/// A difference of two accuracies.
struct Difference {
  double value = 0;           ///< other - baseline
  double standard_error = 0;  ///< of the difference
  /// Degrees of freedom of the standard error: infinite for the test set, k - 1 for the spread over k seeds
  /// of each variant, combined by Welch's formula.
  double degrees = std::numeric_limits<double>::infinity();
  bool one_seed = false;                ///< on either side: the error is only the test set's
  bool of_survivors = false;            ///< trainings of the better one failed: its mean is over the others
  [[nodiscard]] bool is_noise() const;  ///< |value| below one standard error
  [[nodiscard]] bool is_clear() const;  ///< |value| above two, or as many more as few seeds make as likely
  /// "noise", "weak evidence", "clear". What one seed shows is never clear: how far seeds lie apart is not
  /// known; nor is an advantage of the seeds that did not fail.
  [[nodiscard]] const char* word() const;
};
[[nodiscard]] Difference difference(double baseline, double baseline_error, double other, double other_error);

struct Variant {
  const Cell* cell = nullptr;
  const measure::Record* record = nullptr;      ///< whose accuracy it is: of several the last
  std::vector<const measure::Record*> records;  ///< what the mean is over: one a seed, all of as many updates
  int same_seed = 0;  ///< repeats left out because another of their seed is in `records`
  int cut_short = 0;  ///< repeats left out because they ended before the others
  std::string name;
  double epochs = 0;  ///< of half an epoch 0.5
  std::int64_t updates = 0;
  int seeds = 0;
  /// Seeds beside them whose training failed, as where the loss left the finite numbers; one that was tried
  /// again and ended counts as trained.
  int failed = 0;
  std::vector<std::string> failures;  ///< their reasons
  double accuracy = 0;                ///< mean over seeds, last epoch
  double standard_error = 0;
  double seed_variance = 0;        ///< the part of standard_error^2 that the spread over seeds makes
  double lowest = 0, highest = 0;  ///< over seeds
  std::optional<double> test_loss;
  double training_s = 0;       ///< of the last seed, without evaluation
  double epoch_s = 0;          ///< median over its whole epochs
  bool epoch_measured = true;  ///< else there was none: of the part that was trained, over that part
  double peak_lr = 0;
  Verdict verdict;                        ///< against the baseline
  std::optional<Difference> to_baseline;  ///< nothing for the baseline itself and where not comparable
  std::optional<std::size_t> large;       ///< the variant of the same global batch without remedy
  std::optional<Difference> to_large;     ///< gained over that
  std::optional<double>
      given_back;  ///< to_large / what the large batch lost; only where the loss is no noise
};

[[nodiscard]] Difference difference(const Variant& baseline, const Variant& other);

/// The accuracy of a cell's trainings, without a name and held against nothing. None where no test accuracy
/// was measured.
[[nodiscard]] std::optional<Variant> variant_of(const Cell& cell);

struct Convergence {
  std::vector<Variant> variants;               ///< in the records' order; those with a test accuracy
  std::optional<std::size_t> baseline, large;  ///< the first larger batch with the baseline's own rule
  /// The remedy of `large` that gives back most, if any does, and behind it those whose difference from it is
  /// noise.
  std::vector<std::size_t> give_back_most;
  std::vector<std::string> missing;  ///< variants without accuracy, and why
};

/// Settings in which a variant's rule differs from the baseline's, beside the batch and who shares it: "bn
/// sync, warmup 1". Its name need not say all of them.
[[nodiscard]] std::string changed_settings(const measure::Record& baseline, const measure::Record& variant);

/// Of all trainings of `converge`, and those of `train` on the same model and data, or of several of `train`
/// alone: of several configurations, or of one with several seeds. Nothing where there are none.
[[nodiscard]] std::optional<Convergence> convergence(std::span<const Cell> cells);

}  // namespace paceline::analysis

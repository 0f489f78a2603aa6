#pragma once

/// Fits how many steps a training needs to a target (an accuracy, a loss) as its global batch grows.
///
/// The model is S(B) = S_min (1 + B_c / B), so the samples are B S(B) = S_min B_c (1 + B / B_c): below the
/// critical batch B_c a larger batch saves steps at hardly more samples, above it it only costs samples. The
/// curve is fitted to the logarithms of the steps, each batch with the learning rate that needs fewest.
///
/// An interval holds every curve that the runs do not exclude (a profile of the sum of squares): those whose
/// squared residuals exceed the best curve's by no more than t^2 s^2. s is the standard error of a batch's
/// mean and t Student's 97.5 % quantile, and both come from that of two sources which gives more: the spread
/// of the seeds inside their batches, or the scatter of the batches around the curve. So an interval is also
/// wide where the curve fits badly.
///
/// Source   McCandlish, Kaplan, Amodei et al., "An empirical model of large-batch training", 2018

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/compare/cell.h"
#include "analysis/compare/interval.h"
#include "measure/record.h"

namespace paceline::analysis {

/// A fit needs so many batches with a tuned rate.
inline constexpr int kFewestBatches = 4;

/// One training that reached the target. Several of one batch are its seeds.
struct StepsPoint {
  std::int64_t batch = 0;  ///< global
  double steps = 0;        ///< updates, or anything proportional to them
};

/// S(B). Ends of intervals may be 0 and infinite: where no batch is near B_c or above, nothing bounds it.
struct StepsFit {
  Estimate s_min = {}, critical_batch = {};  ///< n: the batches
  double rms = 0;  ///< of the residuals of the batches' means, in logarithms: 0.04 is 4 %
  std::int64_t from_batch = 0, to_batch = 0;  ///< its reach: the smallest and the largest batch of the fit

  /// The steps at any batch, with their interval, which holds the curve's error but no other: beyond
  /// `to_batch` the model itself may err (is_within()).
  ///
  /// Requires  batch > 0
  [[nodiscard]] Estimate steps_at(double batch) const;
  /// Whether the batch lies in the reach of the fit.
  [[nodiscard]] bool is_within(double batch) const;

  /// Curves that the runs do not exclude, by their B_c: the middle of log S_min and how far it may be moved.
  struct Curve {
    double log_critical = 0, log_s_min = 0, slack = 0;
  };
  std::vector<Curve> curves = {};
};

/// Nothing with fewer than kFewestBatches batches, or if more batch does not mean fewer steps.
///
/// Requires  batch > 0, steps > 0 of each point
[[nodiscard]] std::optional<StepsFit> fit_steps(std::span<const StepsPoint> points);

/// One batch with the rate that reaches the target in the fewest steps.
struct BatchSteps {
  std::int64_t batch = 0;
  double steps = 0;          ///< geometric mean over seeds; 0 if none reached the target
  double low = 0, high = 0;  ///< 95 %, Student's t over seeds in logarithms; equal to `steps` for one seed
  int seeds = 0;             ///< that reached the target
  int failed = 0;            ///< that did not, at this rate
  double rate = 0;           ///< the learning rate at its peak
  /// It is the lowest or the highest that was tried, so that another may need fewer steps.
  bool rate_at_end = false;
  /// Its rate is tuned and every seed reached the target.
  bool is_in_fit = false;
};

/// The trainings of one model on data to one target, which differ in batch, rate, seed and execution alone.
struct StepsToTarget {
  std::string model, data;
  std::string quantity;  ///< "accuracy" or "loss"
  double value = 0;
  std::string differs = {};  ///< from other subjects of this target: "optimizer lars"; empty: in nothing
  std::vector<BatchSteps> rows = {};  ///< by batch
  std::optional<StepsFit> fit = {};
  std::string no_fit = {};           ///< why there is none; empty if there is one
  std::int64_t evaluated_every = 0;  ///< updates: a row's steps are at most so many too many
  /// Every training, those included that did not reach the target. Lifetime: that of the cells' records.
  std::vector<const measure::Record*> records = {};
};

/// Empty where no record has a target. In the order of the cells.
[[nodiscard]] std::vector<StepsToTarget> steps_to_target(std::span<const Cell> cells);

}  // namespace paceline::analysis

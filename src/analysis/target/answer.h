#pragma once

/// Answers with how many workers, at which batch, a training reaches its target: soonest, cheapest, before a
/// deadline, within a budget.
///
///     time(N, B) = S(B) t(N, B/N) + S(B) B / V e / N        cost(N, B) = price(N) time(N, B)
///
/// S(B) steps to the target at the global batch B, t the step of N workers at the local batch B/N, e the
/// seconds that one worker would need for an evaluation, which is made after each V samples and shared by all
/// workers. Of N workers the price does not depend on the batch, so the soonest batch is also the cheapest.
///
/// An interval of a time joins that of its steps and that of its step, with its part of the evaluations, in
/// quadrature, in logarithms. An interval of a choice (a batch, a number of workers) has all that are chosen
/// by some curve S(B) which the runs do not exclude, or by the ends of the steps' intervals.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "analysis/predict/forecast.h"

namespace paceline::analysis {

/// S(B) = s_min (1 + critical_batch / B), as target/steps_to_target.h fits it.
struct StepsLaw {
  double s_min = 0, critical_batch = 0;
  [[nodiscard]] double steps(double batch) const { return s_min * (1 + critical_batch / batch); }
};

struct TargetQuestion {
  StepsLaw steps;                       ///< the best fit
  std::vector<StepsLaw> possible;       ///< others that the runs do not exclude
  double from_batch = 0, to_batch = 0;  ///< global batches that are tried: no curve is trusted beyond its own
  std::vector<std::int64_t> workers;    ///< ascending
  std::vector<std::int64_t> local_batches;  ///< ascending; those with a global batch in reach are tried
  /// The step of so many workers at a local batch; none: it is not possible, as beyond the memory.
  std::function<std::optional<Predicted>(std::int64_t workers, std::int64_t local_batch)> step_s;
  Predicted evaluation_s = {};             ///< of one worker alone
  double samples_between_evaluations = 0;  ///< 0: there are none by samples
  double steps_between_evaluations = 0;    ///< others besides, whatever the batch; 0: none
  std::function<double(std::int64_t workers)>
      price_an_hour;  ///< of all workers; null: 1 for each, worker-hours
  std::optional<double> deadline_s, budget;
};

/// Of one number of workers, at the batch with which it reaches the target soonest.
struct TargetPoint {
  std::int64_t workers = 1, local_batch = 1;
  Predicted batch;  ///< global
  Predicted steps, step_s, time_s, cost;
  double evaluations_s = 0;  ///< of time_s
  /// No batch beside it in reach is slower: a smaller or a larger one may be faster. Not where a single
  /// batch is tried.
  bool is_at_end = false;
  bool is_on_front = false;  ///< no other number of workers is both faster and cheaper
};

/// A number of workers that answers a question.
struct TargetChoice {
  std::int64_t workers = 1;
  std::int64_t low = 1, high = 1;  ///< its interval
  /// The whole interval of its time (or cost) keeps the deadline (or the budget).
  bool is_sure = true;
};

struct TargetAnswer {
  std::vector<TargetPoint> points;                  ///< ascending workers
  std::vector<std::int64_t> impossible;             ///< workers without a possible batch in reach
  std::optional<TargetChoice> fastest, cheapest;    ///< none: there is no point
  std::optional<TargetChoice> in_time, for_budget;  ///< cheapest in time, fastest for the budget; none: not
                                                    ///< asked for, or no number of workers is
  [[nodiscard]] const TargetPoint* at(std::int64_t workers) const;
};

/// Pure. Of equal points the fewest workers are chosen.
///
/// Requires  positive workers and batches, ascending; s_min > 0, critical_batch >= 0
[[nodiscard]] TargetAnswer answer(const TargetQuestion& question);

}  // namespace paceline::analysis

#pragma once

/// Makes a question of target/answer.h of what records say: the curve of steps to a target, and the steps of
/// any number of workers as they are predicted.

#include <cstdint>

#include "analysis/predict/forecast.h"
#include "analysis/target/answer.h"
#include "analysis/target/steps_to_target.h"

namespace paceline::analysis {

struct QuestionOfRecords {
  TargetQuestion question;  ///< without price, deadline and budget
  std::int64_t lacks_link =
      0;  ///< the fewest workers whose network is not known, which are left out; 0: none
};

/// `request`: the numbers of workers and the cluster. Tried are local batches of 1, 2, 3, 4, 6, 8, 12 ..., as
/// far as their steps are known, with an evaluation after each epoch, and after as many steps as in the
/// trainings. With `global_batch` above 0 no other global batch is tried; workers that it cannot be divided
/// among have no batch.
///
/// Requires  curve.fit
/// Cost      some 2 s for 20 local batches
///
/// Errors    as forecast(); Error(data): no step of a batch of the curve is known, or `global_batch` is
///           outside the curve
[[nodiscard]] QuestionOfRecords target_question(const StepsToTarget& curve, const StepModel& model,
                                                const ForecastRequest& request,
                                                std::int64_t global_batch = 0);

/// The learning rate at a global batch: between those of the curve's batches on a straight line, both in
/// logarithms; beyond them that of the nearest. 0: no rate is known.
[[nodiscard]] double rate_at(const StepsToTarget& curve, double batch);

}  // namespace paceline::analysis

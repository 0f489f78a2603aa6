#include "analysis/target/target_question.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "base/error.h"
#include "measure/ledger.h"
#include "measure/statistics.h"

namespace paceline::analysis {
namespace {

/// Of each curve both ends.
std::vector<StepsLaw> laws_of(const StepsFit& fit) {
  std::vector<StepsLaw> laws;
  for (const auto& curve : fit.curves)
    for (const double end : {-curve.slack, curve.slack})
      laws.push_back(
          {.s_min = std::exp(curve.log_s_min + end), .critical_batch = std::exp(curve.log_critical)});
  return laws;
}

/// Steps of all numbers of workers at all local batches that the records say something about.
struct StepTable {
  std::map<std::pair<std::int64_t, std::int64_t>, Predicted> steps;
  std::vector<std::int64_t> local_batches;  ///< ascending
  std::int64_t lacks_link = 0;              ///< the fewest workers whose network is not known; 0: none
};

/// Of a global batch, for each of these numbers of workers.
std::set<std::int64_t> local_batches_of(std::int64_t global_batch, const std::vector<std::int64_t>& workers) {
  std::set<std::int64_t> batches;
  for (const std::int64_t number : workers)
    if (global_batch % number == 0) batches.insert(global_batch / number);
  return batches;
}

StepTable step_table(const StepModel& model, ForecastRequest request, const std::set<std::int64_t>& tried) {
  StepTable table;
  for (const std::int64_t local : tried) {
    if (model.alone(static_cast<double>(local)).is_far) continue;
    table.local_batches.push_back(local);
    request.step = {.mode = Mode::weak, .batch = static_cast<double>(local)};
    for (const auto& point : forecast(model, request).points) {
      if (point.lacks_link && (table.lacks_link == 0 || point.workers < table.lacks_link))
        table.lacks_link = point.workers;
      if (point.fits && !point.lacks_link && !point.is_beyond_batches && !point.is_beyond_data)
        table.steps.emplace(std::pair(point.workers, local), point.step_s);
    }
  }
  return table;
}

/// Seconds that one worker alone would need for an evaluation: the median over the trainings, and what nine
/// of ten took, since other programs may have worked beside some.
Predicted evaluation_seconds(const StepsToTarget& curve) {
  std::vector<double> all;
  for (const auto* record : curve.records) {
    if (!record->evaluations || record->evaluations->empty() || record->ranks.empty()) continue;
    double seconds = 0;
    for (const auto& rank : record->ranks) seconds += seconds_in(rank, measure::Phase::evaluation);
    all.push_back(seconds / static_cast<double>(record->evaluations->size()));
  }
  if (all.empty()) return {};
  return {.value = measure::quantile(all, 0.5),
          .low = measure::quantile(all, 0.05),
          .high = measure::quantile(all, 0.95)};
}

}  // namespace

QuestionOfRecords target_question(const StepsToTarget& curve, const StepModel& model,
                                  const ForecastRequest& request, std::int64_t global_batch) {
  base::expects(curve.fit.has_value(), "the curve has a fit");
  const auto& fit = *curve.fit;
  if (global_batch > 0 && !fit.is_within(static_cast<double>(global_batch)))
    base::fail(
        base::ErrorKind::data,
        "--global-batch {} is outside of the batches that were trained, {} to {}, and nothing is guessed "
        "beyond them; converge --compare batches trains others",
        global_batch, fit.from_batch, fit.to_batch);
  const auto table = std::make_shared<const StepTable>(step_table(
      model, request,
      global_batch > 0 ? local_batches_of(global_batch, request.workers) : half_octaves(1, fit.to_batch)));
  if (table->steps.empty())
    base::fail(
        base::ErrorKind::data, "the records time no step of {}: sweep or scale with such batches measures it",
        global_batch > 0 ? fmt::format("global batch {} on any of these numbers of workers", global_batch)
                         : fmt::format("a batch of the curve, {} to {}", fit.from_batch, fit.to_batch));
  QuestionOfRecords made;
  made.lacks_link = table->lacks_link;
  auto& question = made.question;
  question.steps = {.s_min = fit.s_min.median, .critical_batch = fit.critical_batch.median};
  question.possible = laws_of(fit);
  question.from_batch = static_cast<double>(global_batch > 0 ? global_batch : fit.from_batch);
  question.to_batch = static_cast<double>(global_batch > 0 ? global_batch : fit.to_batch);
  question.workers = request.workers;
  question.local_batches = table->local_batches;
  question.step_s = [table](std::int64_t workers, std::int64_t local) {
    const auto found = table->steps.find(std::pair(workers, local));
    return found == table->steps.end() ? std::nullopt : std::optional(found->second);
  };
  question.evaluation_s = evaluation_seconds(curve);
  question.samples_between_evaluations = model.train_samples;
  question.steps_between_evaluations = static_cast<double>(curve.evaluated_every);
  return made;
}

double rate_at(const StepsToTarget& curve, double batch) {
  const BatchSteps* below = nullptr;
  for (const auto& row : curve.rows) {
    if (!row.is_in_fit || row.rate <= 0) continue;
    const auto at = static_cast<double>(row.batch);
    if (at >= batch && below != nullptr) {
      const double share = std::log(batch / static_cast<double>(below->batch)) /
                           std::log(at / static_cast<double>(below->batch));
      return below->rate * std::pow(row.rate / below->rate, share);
    }
    if (at >= batch) return row.rate;
    below = &row;
  }
  return below != nullptr ? below->rate : 0;
}

}  // namespace paceline::analysis

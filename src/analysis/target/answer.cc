#include "analysis/target/answer.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace paceline::analysis {
namespace {

constexpr double kSecondsOfAnHour = 3600;

/// One batch that N workers can have.
struct TriedBatch {
  std::int64_t local_batch = 1;
  double batch = 0;  ///< global
  Predicted step_s;
  Predicted evaluations_s;  ///< spread over the steps: of each
};

/// What may be true: a curve, and which figure of the steps, their value or an end of the interval.
struct Scenario {
  StepsLaw law;
  double Predicted::*figure = &Predicted::value;
  [[nodiscard]] double seconds(const TriedBatch& tried) const {
    return law.steps(tried.batch) * (tried.step_s.*figure + tried.evaluations_s.*figure);
  }
};

/// N workers: the batches that they can have, and what an hour of them costs.
struct WorkersPlan {
  std::int64_t workers = 1;
  std::vector<TriedBatch> tried;  ///< ascending batches, one at least
  double price = 0;

  [[nodiscard]] std::size_t soonest(const Scenario& scenario) const {
    const auto seconds = [&](const TriedBatch& one) { return scenario.seconds(one); };
    return static_cast<std::size_t>(std::ranges::min_element(tried, {}, seconds) - tried.begin());
  }
  [[nodiscard]] double seconds(const Scenario& scenario) const {
    return scenario.seconds(tried[soonest(scenario)]);
  }
  [[nodiscard]] double cost_of(double seconds) const { return price * seconds / kSecondsOfAnHour; }
};

WorkersPlan plan_of(const TargetQuestion& question, std::int64_t workers) {
  WorkersPlan plan{
      .workers = workers,
      .tried = {},
      .price = question.price_an_hour ? question.price_an_hour(workers) : static_cast<double>(workers)};
  const auto number = static_cast<double>(workers);
  for (const std::int64_t local : question.local_batches) {
    const double batch = number * static_cast<double>(local);
    if (batch < question.from_batch || batch > question.to_batch) continue;
    const auto step = question.step_s(workers, local);
    if (!step) continue;
    const double evaluations =
        (question.samples_between_evaluations > 0 ? batch / question.samples_between_evaluations : 0) +
        (question.steps_between_evaluations > 0 ? 1 / question.steps_between_evaluations : 0);
    plan.tried.push_back({.local_batch = local,
                          .batch = batch,
                          .step_s = *step,
                          .evaluations_s = question.evaluation_s.scaled(evaluations / number)});
  }
  return plan;
}

std::vector<Scenario> scenarios_of(const TargetQuestion& question) {
  std::vector<Scenario> all{{.law = question.steps}};
  for (const auto& law : question.possible) all.push_back({.law = law});
  all.push_back({question.steps, &Predicted::low});
  all.push_back({question.steps, &Predicted::high});
  return all;
}

/// `value` with two relative uncertainties, each as [low, high] of a factor's own figure.
Predicted joined_intervals(const Predicted& a, const Predicted& b) {
  const double value = a.value * b.value;
  const double down = std::hypot(std::log(a.value / a.low), std::log(b.value / b.low));
  const double up = std::hypot(std::log(a.high / a.value), std::log(b.high / b.value));
  return {.value = value, .low = value * std::exp(-down), .high = value * std::exp(up)};
}

/// Of two parts of one time that are known apart from each other.
Predicted sum_of_parts(const Predicted& a, const Predicted& b) {
  const double value = a.value + b.value;
  return {.value = value,
          .low = value - std::hypot(a.value - a.low, b.value - b.low),
          .high = value + std::hypot(a.high - a.value, b.high - b.value)};
}

TargetPoint point_at_best(const WorkersPlan& plan, const TargetQuestion& question,
                          const std::vector<Scenario>& scenarios) {
  const auto best = plan.soonest(scenarios.front());
  const auto& chosen = plan.tried[best];
  TargetPoint point{.workers = plan.workers, .local_batch = chosen.local_batch};
  point.batch = {.value = chosen.batch, .low = chosen.batch, .high = chosen.batch};
  for (const auto& scenario : scenarios) {
    const double other = plan.tried[plan.soonest(scenario)].batch;
    point.batch.low = std::min(point.batch.low, other);
    point.batch.high = std::max(point.batch.high, other);
  }
  const double steps = question.steps.steps(chosen.batch);
  point.steps = {.value = steps, .low = steps, .high = steps};
  for (const auto& law : question.possible) {
    point.steps.low = std::min(point.steps.low, law.steps(chosen.batch));
    point.steps.high = std::max(point.steps.high, law.steps(chosen.batch));
  }
  point.step_s = chosen.step_s;
  point.time_s = joined_intervals(point.steps, sum_of_parts(chosen.evaluations_s, chosen.step_s));
  point.evaluations_s = steps * chosen.evaluations_s.value;
  point.cost = point.time_s.scaled(plan.cost_of(1));
  point.is_at_end = question.from_batch < question.to_batch && (best == 0 || best + 1 == plan.tried.size());
  return point;
}

/// What is asked of the plans: the least `figure` among those that keep the limit.
struct Asked {
  std::function<double(const WorkersPlan&, double seconds)> figure;
  std::function<bool(const WorkersPlan&, double seconds)> keeps;
};

std::optional<std::int64_t> workers_for(const Asked& asked, const std::vector<WorkersPlan>& plans,
                                        const Scenario& scenario) {
  std::optional<std::int64_t> workers;
  double least = 0;
  for (const auto& plan : plans) {
    const double seconds = plan.seconds(scenario);
    if (!asked.keeps(plan, seconds)) continue;
    const double figure = asked.figure(plan, seconds);
    if (workers && figure >= least) continue;
    workers = plan.workers;
    least = figure;
  }
  return workers;
}

/// None if no plan keeps the limit at the best figures. A scenario in which none does adds nothing to the
/// interval, but then the choice is not sure.
std::optional<TargetChoice> choice_of(const Asked& asked, const std::vector<WorkersPlan>& plans,
                                      const std::vector<Scenario>& scenarios) {
  const auto workers = workers_for(asked, plans, scenarios.front());
  if (!workers) return std::nullopt;
  TargetChoice choice{.workers = *workers, .low = *workers, .high = *workers};
  for (const auto& scenario : scenarios) {
    const auto other = workers_for(asked, plans, scenario);
    choice.is_sure = choice.is_sure && other;
    choice.low = std::min(choice.low, other.value_or(choice.low));
    choice.high = std::max(choice.high, other.value_or(choice.high));
  }
  return choice;
}

void mark_front(std::vector<TargetPoint>& points) {
  for (auto& point : points)
    point.is_on_front = std::ranges::none_of(points, [&](const TargetPoint& other) {
      const double time = other.time_s.value, cost = other.cost.value;
      return time <= point.time_s.value && cost <= point.cost.value &&
             (time < point.time_s.value || cost < point.cost.value || other.workers < point.workers);
    });
}

bool is_ascending(const std::vector<std::int64_t>& numbers) {
  return !numbers.empty() && numbers.front() > 0 && std::ranges::is_sorted(numbers);
}

}  // namespace

const TargetPoint* TargetAnswer::at(std::int64_t workers) const {
  const auto found = std::ranges::find(points, workers, &TargetPoint::workers);
  return found == points.end() ? nullptr : &*found;
}

TargetAnswer answer(const TargetQuestion& question) {
  base::expects(question.steps.s_min > 0 && question.steps.critical_batch >= 0 && question.step_s &&
                    is_ascending(question.workers) && is_ascending(question.local_batches),
                "a curve, and ascending workers and batches");
  TargetAnswer result;
  std::vector<WorkersPlan> plans;
  for (const std::int64_t workers : question.workers) {
    auto plan = plan_of(question, workers);
    if (plan.tried.empty())
      result.impossible.push_back(workers);
    else
      plans.push_back(std::move(plan));
  }
  const auto scenarios = scenarios_of(question);
  for (const auto& plan : plans) result.points.push_back(point_at_best(plan, question, scenarios));
  mark_front(result.points);
  const auto time = [](const WorkersPlan&, double seconds) { return seconds; };
  const auto cost = [](const WorkersPlan& plan, double seconds) { return plan.cost_of(seconds); };
  const auto always = [](const WorkersPlan&, double) { return true; };
  result.fastest = choice_of({.figure = time, .keeps = always}, plans, scenarios);
  result.cheapest = choice_of({.figure = cost, .keeps = always}, plans, scenarios);
  if (question.deadline_s) {
    const double deadline = *question.deadline_s;
    const auto is_in_time = [&](const WorkersPlan&, double seconds) { return seconds <= deadline; };
    result.in_time = choice_of({.figure = cost, .keeps = is_in_time}, plans, scenarios);
    if (result.in_time) result.in_time->is_sure = result.at(result.in_time->workers)->time_s.high <= deadline;
  }
  if (question.budget) {
    const double budget = *question.budget;
    const auto is_paid = [&](const WorkersPlan& plan, double seconds) {
      return plan.cost_of(seconds) <= budget;
    };
    result.for_budget = choice_of({.figure = time, .keeps = is_paid}, plans, scenarios);
    if (result.for_budget)
      result.for_budget->is_sure = result.at(result.for_budget->workers)->cost.high <= budget;
  }
  return result;
}

}  // namespace paceline::analysis

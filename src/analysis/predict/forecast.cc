#include "analysis/predict/forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/predict/simulate_messages.h"
#include "base/error.h"
#include "base/text.h"
#include "measure/statistics.h"

namespace paceline::analysis {
namespace {

constexpr double kPerDoubling = 0.015;  ///< of the model's error, beyond what was measured
constexpr double kOtherHardware = 0.05;
constexpr double kShortestStep = 1e-12;
constexpr double kWorthMeasuring = 0.5;  ///< least correlation with the target
constexpr std::size_t kOwnDraws = 24;    ///< resamples of own work that the draws share

/// The value at `q` of the draws, and of the interval around `value` that they give.
Predicted with_interval(double value, std::vector<double> draws, double widening) {
  std::ranges::sort(draws);
  const double low = std::min(value, measure::quantile(draws, kTailPart)),
               high = std::max(value, measure::quantile(draws, 1 - kTailPart));
  return {.value = value,
          .low = value * std::pow(low / value, widening),
          .high = value * std::pow(high / value, widening)};
}

std::string speed_text(const Range& speed) {
  if (speed == Range::of(1)) return "equal to";
  return speed.is_fixed() ? fmt::format("{:g} times", speed.low)
                          : fmt::format("{:g} to {:g} times", speed.low, speed.high);
}

double correlation_of_logs(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> x(a.size()), y(b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    x[i] = std::log(a[i]);
    y[i] = std::log(b[i]);
  }
  const double mx = measure::mean(x), my = measure::mean(y);
  double xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) xy += (x[i] - mx) * (y[i] - my) / static_cast<double>(x.size());
  const double sd = measure::standard_deviation(x) * measure::standard_deviation(y);
  return sd > 0 ? xy / sd : 0;
}

/// Everything that belongs to one forecast while it is made.
class Forecaster {
 public:
  Forecaster(const StepModel& model, const ForecastRequest& request)
      : model_(model),
        request_(request),
        measured_(measured_cluster(model, request.emulated)),
        target_(changed(request.cluster.value_or(measured_), request.what_if)),
        as_measured_(model, request.step, {}, model.width, measured_, true),
        predictor_(model, request.step, request.what_if,
                   request.cluster ? request.cluster->workers_per_node : model.width, target_,
                   !request.cluster) {
    choose_workers();
    for (const Tail tail : {Tail::exponential, Tail::none})
      (tail == Tail::none ? at_least_ : largest_) = largest_factors(model.own, all_, tail);
  }

  Forecast make() {
    Forecast result{.subject = model_.subject, .request = request_, .cluster = target_};
    result.unknown = model_.unknown;
    result.not_used = model_.not_used;
    if (request_.fidelity == Fidelity::messages) simulate_reductions();
    draw_steps();
    for (std::size_t i = 0; i < workers_.size(); ++i) result.points.push_back(point(i));
    for (const auto& step : model_.steps)
      if (!step.is_without_exchange && step.batch == request_.step.local_batch(step.workers))
        result.measured.push_back({step.workers, step.batch, step.step_s, step.name});
    result.knee = knee(request_.efficiency, result.points);
    result.half = knee(0.5, result.points);
    result.fastest = std::ranges::max_element(result.points, {}, [](const ForecastPoint& point) {
                       return point.images_per_s.value;
                     })->workers;
    add_limit(result);
    add_next(result);
    add_unknown(result);
    return result;
  }

  /// The figures of one batch added to `form`.
  void add_to(ClosedForm& form) const {
    const auto target = inputs(std::nullopt, middle(target_));
    const auto missed = as_measured_.missed(as_measured(std::nullopt, middle(measured_)), false);
    auto& batch = form.batches.emplace_back(
        ClosedForm::Batch{.batch = request_.step.batch, .missed_s = missed.seconds});
    form.workers.clear();  // they are the same for every batch
    for (const auto workers : workers_) {
      auto one = predictor_.figures(workers, target);
      batch.loader_s = one.loader_s;
      batch.own.push_back(one.own);
      form.workers.push_back(std::move(one.of_workers));
    }
  }

 private:
  void choose_workers() {
    for (const auto workers : request_.workers)
      if (request_.step.local_batch(static_cast<double>(workers)) >= 1 && workers >= model_.fewest())
        workers_.push_back(workers);
    if (workers_.empty())
      base::fail(base::ErrorKind::usage,
                 "a global batch of {:g} leaves less than a sample for each of {} workers; ask for fewer",
                 request_.step.batch, request_.workers.front());
    if (request_.cluster) require_slots(*request_.cluster, workers_.back());
    std::set<std::int64_t> all(workers_.begin(), workers_.end());
    all.insert(model_.fewest());
    for (const auto& step : model_.steps) all.insert(step.workers);
    all_.assign(all.begin(), all.end());
  }

  [[nodiscard]] DrawnInputs inputs(std::optional<std::size_t> draw, const Cluster& cluster) const {
    return {.lines = draw,
            .cluster = cluster,
            .largest = draw ? own_draws_[*draw % kOwnDraws] : largest_,
            .workers = all_,
            .reductions = reductions_};
  }

  /// Of the measured reductions, which are known without messages.
  [[nodiscard]] DrawnInputs as_measured(std::optional<std::size_t> draw, const Cluster& cluster) const {
    auto all = inputs(draw, cluster);
    all.reductions = {};
    return all;
  }

  [[nodiscard]] double sigma(std::int64_t workers) const {
    const double batch = request_.step.local_batch(static_cast<double>(workers));
    // To the nearest measured workers; and to the nearest batch of nodes that are as wide.
    double of_workers = 1e9, doublings = 1e9;
    const int width = static_cast<int>(std::min<std::int64_t>(workers, predictor_.width()));
    for (const auto& step : model_.steps) {
      if (step.is_without_exchange) continue;
      of_workers = std::min(of_workers, std::abs(std::log2(static_cast<double>(workers) / step.workers)));
      if (std::min(width, model_.width) == step.width || model_.width == 1)
        doublings = std::min(doublings, std::abs(std::log2(step.batch / batch)));
    }
    const bool is_other_link = request_.what_if.bandwidth != 1 || request_.what_if.latency != 1;
    return kPerDoubling * (of_workers + (doublings < 1e9 ? doublings : 0)) +
           (is_other_link && workers > 1 ? kOtherHardware : 0);
  }

  /// By messages over the formula, of each bucket, where so many can be sent.
  void simulate_reductions() {
    constexpr std::int64_t kMostRanks = 256;
    const auto cluster = middle(target_);
    for (const auto workers : all_) {
      auto& factors = reductions_.emplace_back(model_.buckets.size(), 1.0);
      if (workers < 2 || workers > kMostRanks || workers > cluster.slots() || !predictor_.knows_link(workers))
        continue;
      for (std::size_t i = 0; i < factors.size(); ++i) {
        const int ranks = static_cast<int>(workers);
        const double bytes = model_.buckets[i].bytes;
        const auto seconds = simulated_all_reduce(cluster, ranks, bytes);
        const double formula = all_reduce_cost(cluster, ranks, bytes).seconds;
        if (seconds && formula > 0) factors[i] = *seconds / formula;
      }
    }
  }

  void draw_steps() {
    base::Rng of_own(0, base::Purpose::bootstrap, 1, 1);
    for (std::size_t i = 0; i < kOwnDraws; ++i)
      own_draws_.push_back(largest_factors(drawn_again(model_.own, of_own), all_,
                                           i % 2 == 0 ? Tail::exponential : Tail::pareto));
    draws_.assign(workers_.size(), std::vector<double>(kForecastDraws));
    baseline_draws_.resize(kForecastDraws);
    const bool draws_cluster = request_.cluster.has_value();
    const double of_hardware =
        request_.is_other_hardware || request_.what_if.compute != 1 ? kOtherHardware : 0;
    const auto measured = middle(measured_);
    for (std::size_t i = 0; i < kForecastDraws; ++i) {
      base::Rng rng(0, base::Purpose::bootstrap, i, 2);
      const double z = rng.normal(), z_of_hardware = rng.normal();
      const auto target = inputs(i, draws_cluster ? draw(target_, rng) : middle(target_));
      const auto missed = as_measured_.missed(as_measured(i, measured), false);
      const double baseline =
          std::max(kShortestStep, predictor_.step(model_.fewest(), target, missed, false).seconds);
      const double hardware = std::exp(of_hardware * z_of_hardware);
      baseline_draws_[i] = hardware * baseline;
      for (std::size_t n = 0; n < workers_.size(); ++n) {
        const double step =
            std::max(kShortestStep, predictor_.step(workers_[n], target, missed, false).seconds);
        // No error of the model makes a step shorter than an ideal one, unless the model itself says so.
        const double ideal = efficiency(baseline, 1, static_cast<double>(workers_[n]));
        draws_[n][i] = hardware * std::max(step * std::exp(sigma(workers_[n]) * z), std::min(step, ideal));
      }
    }
    target_inputs_ = inputs(std::nullopt, middle(target_));
    missed_ = as_measured_.missed(as_measured(std::nullopt, measured), true);
    baseline_s_ = predictor_.step(model_.fewest(), target_inputs_, missed_, false).seconds;
  }

  /// E of a step against the baseline's.
  [[nodiscard]] double efficiency(double baseline_s, double step_s, double workers) const {
    return request_.step.mode == Mode::weak ? baseline_s / step_s
                                            : baseline_s * model_.fewest() / (workers * step_s);
  }

  [[nodiscard]] ForecastPoint point(std::size_t n) const {
    const auto workers = workers_[n];
    const auto number = static_cast<double>(workers);
    ForecastPoint point{.workers = workers, .local_batch = request_.step.local_batch(number)};
    const int per_node = model_.is_ghost ? 1 : predictor_.width();
    point.nodes = static_cast<int>((workers + per_node - 1) / per_node);
    point.workers_per_node = static_cast<int>(std::min<std::int64_t>(workers, per_node));
    point.step = predictor_.step(workers, target_inputs_, missed_, true);
    point.sigma = sigma(workers);
    point.step_s = with_interval(point.step.seconds, draws_[n], request_.widening);
    auto least = target_inputs_;
    least.largest = at_least_;
    point.wait_at_least_s = predictor_.step(workers, least, missed_, false).seconds;
    const double samples = number * point.local_batch;
    const auto inverse = [&](double factor) {
      return Predicted{factor / point.step_s.value, factor / point.step_s.high, factor / point.step_s.low};
    };
    point.images_per_s = inverse(samples);
    point.is_beyond_data = model_.train_samples > 0 && samples > model_.train_samples;
    const double steps = point.is_beyond_data ? 0 : model_.train_samples / samples;
    point.epoch_s = point.step_s.scaled(steps);
    std::vector<double> of_draws(kForecastDraws);
    for (std::size_t i = 0; i < kForecastDraws; ++i)
      of_draws[i] = efficiency(baseline_draws_[i], draws_[n][i], number);
    point.efficiency =
        with_interval(efficiency(baseline_s_, point.step.seconds, number), of_draws, request_.widening);
    add_costs(point);
    add_marks(point);
    return point;
  }

  void add_costs(ForecastPoint& point) const {
    const StepModel::Memory* plan = nullptr;
    for (const auto& one : model_.memory)
      if (plan == nullptr || std::abs(std::log(one.batch / point.local_batch)) <
                                 std::abs(std::log(plan->batch / point.local_batch)))
        plan = &one;
    // A plan of another batch is a bound only if its batch is larger, and no figure otherwise.
    if (plan != nullptr && plan->batch == point.local_batch) {
      point.memory_bytes = plan->bytes_a_worker;
      point.fits = target_.memory_bytes <= 0 || plan->bytes_a_worker <= target_.memory_bytes;
    }
    if (target_.cost && !point.is_beyond_data)
      point.epoch_cost = point.epoch_s.scaled(point.nodes * target_.cost->node_hour / 3600);
    // Energy follows the time that devices are held, at the power that was measured.
    if (model_.joules_a_sample && !request_.is_other_hardware && !point.is_beyond_data)
      point.epoch_joules = *model_.joules_a_sample * model_.train_samples / point.efficiency.value;
  }

  void add_marks(ForecastPoint& point) const {
    point.is_measured = std::ranges::any_of(model_.steps, [&](const auto& step) {
      return step.workers == point.workers && step.batch == point.local_batch && !step.is_without_exchange;
    });
    point.lacks_link = !predictor_.knows_link(point.workers);
    const auto at = std::ranges::lower_bound(all_, point.workers) - all_.begin();
    point.is_beyond_samples = largest_[static_cast<std::size_t>(at)].is_beyond_samples;
    point.is_beyond_batches = model_.alone(point.local_batch).is_far;
    point.lacks_sharing =
        std::min<std::int64_t>(point.workers, predictor_.width()) > std::max(1, model_.width);
  }

  [[nodiscard]] double efficiency_at(std::int64_t workers) const {
    auto at = target_inputs_;
    const std::vector<std::int64_t> one = workers == model_.fewest()
                                              ? std::vector{workers}
                                              : std::vector<std::int64_t>{model_.fewest(), workers};
    const auto largest = largest_factors(model_.own, one, Tail::exponential);
    at.largest = largest;
    at.reductions = {};
    at.workers = one;
    return efficiency(baseline_s_, predictor_.step(workers, at, missed_, false).seconds,
                      static_cast<double>(workers));
  }

  [[nodiscard]] Knee knee(double least, const std::vector<ForecastPoint>& points) const {
    std::vector<double> efficiencies;
    for (const auto& point : points) efficiencies.push_back(point.efficiency.value);
    std::vector<std::vector<double>> drawn(kForecastDraws);
    for (std::size_t i = 0; i < kForecastDraws; ++i)
      for (std::size_t n = 0; n < workers_.size(); ++n)
        drawn[i].push_back(efficiency(baseline_draws_[i], draws_[n][i], static_cast<double>(workers_[n])));
    return knee_of(least, workers_, efficiencies, drawn,
                   [&](std::int64_t workers) { return efficiency_at(workers); });
  }

  /// The largest loss where the efficiency is at the knee, or at the most workers if it is never reached.
  void add_limit(Forecast& result) const {
    const ForecastPoint* at = &result.points.back();
    if (!result.knee.is_beyond)
      for (const auto& point : result.points)
        if (point.efficiency.value < request_.efficiency) {
          at = &point;
          break;
        }
    result.limit_at = at->workers;
    // Where a step waits for its data, what these hide costs nothing, though the fewest workers may wait too.
    const bool waits = at->step.waits_for != DataSource::none;
    const auto& parts = at->step.parts;
    const auto largest = waits ? parts.begin() + static_cast<std::ptrdiff_t>(LossPart::data_wait)
                               : std::ranges::max_element(parts);
    if (!waits && *largest <= 0) return;
    result.limit = static_cast<LossPart>(largest - parts.begin());
    result.limit_points = std::max(0.0, *largest) / at->step.seconds;
    if (result.limit == LossPart::data_wait) result.limit_source = at->step.waits_for;
  }

  void add_next(Forecast& result) const {
    const std::int64_t most = request_.at_most.value_or(std::int64_t{4} * model_.most());
    std::size_t target = workers_.size() - 1;
    if (result.knee.workers)
      for (std::size_t n = 0; n < workers_.size(); ++n)
        if (workers_[n] <= std::max<std::int64_t>(*result.knee.workers, 1)) target = n;
    double best = 0;
    for (std::size_t n = 0; n < workers_.size(); ++n) {
      if (workers_[n] > most || result.points[n].is_measured || workers_[n] > workers_[target]) continue;
      const double correlation = correlation_of_logs(draws_[n], draws_[target]);
      if (correlation < kWorthMeasuring) continue;
      const double worth =
          correlation * correlation / (static_cast<double>(workers_[n]) * result.points[n].step_s.value);
      if (worth <= best) continue;
      best = worth;
      result.next = {.workers = workers_[n], .correlation = correlation, .target = workers_[target]};
    }
  }

  void add_unknown(Forecast& result) const {
    const auto any = [&](auto mark) {
      return std::ranges::any_of(result.points, [&](const auto& one) { return one.*mark; });
    };
    auto& say = result.unknown;
    if (request_.is_other_hardware)
      say.push_back(fmt::format(
          "compute on the devices of {} was not measured: it is taken as {} the measured worker's",
          target_.name, speed_text(request_.cluster->worker_speed)));
    if (any(&ForecastPoint::lacks_link))
      say.push_back(fmt::format(
          "the network between hosts was not measured: beyond {} the step is at least, and the efficiency at most, "
          "what is predicted; give --link or --cluster",
          base::counted(std::max(model_.most(), 1), "worker")));
    if ((request_.what_if.bandwidth != 1 || request_.what_if.latency != 1) && !target_.node_link.exists() &&
        !target_.network.exists() && !target_.emulated)
      say.emplace_back(
          "--what-if for the link changes nothing here: no link was measured; give --cluster or --link");
    if (any(&ForecastPoint::is_beyond_data))
      say.push_back(fmt::format("no epoch is given where a step takes more than the {:.0f} training images",
                                model_.train_samples));
    if (any(&ForecastPoint::lacks_sharing))
      say.push_back(fmt::format(
          "how workers share a node of {} was not measured (at most {} were): their slow-down follows from nothing; "
          "measure a node at its full width",
          predictor_.width(), model_.width));
    if (any(&ForecastPoint::is_beyond_samples))
      say.push_back(fmt::format(
          "{} speak of the slowest of at most {} workers; of more, an exponential and a Pareto tail are assumed",
          base::counted(static_cast<std::int64_t>(model_.own.others.size()), "step"),
          std::max<std::size_t>(1, model_.own.others.size() / 10)));
    if (any(&ForecastPoint::is_beyond_batches))
      say.emplace_back("some batches lie beyond 1.5 times the measured range: their compute is extrapolated");
    if (!workers_.empty() &&
        model_.alone(request_.step.local_batch(static_cast<double>(workers_.back()))).is_assumed)
      say.emplace_back(
          "one batch was measured: compute at other batches is assumed to be proportional; measure three");
    if (target_.worker_spread.high == 0 && !model_.is_ghost)
      say.emplace_back(
          "how much nodes differ in speed was not measured and is taken as 0; a cluster file can say it (spread)");
  }

  const StepModel& model_;
  const ForecastRequest& request_;
  Cluster measured_, target_;
  StepPredictor as_measured_, predictor_;
  std::vector<std::int64_t> workers_, all_;
  std::vector<LargestFactor> largest_, at_least_;
  std::vector<std::vector<LargestFactor>> own_draws_;
  std::vector<std::vector<double>> draws_;  ///< [N][draw]: seconds
  std::vector<double> baseline_draws_;
  std::vector<std::vector<double>> reductions_;  ///< of Fidelity::messages, for all_ and the buckets
  DrawnInputs target_inputs_;
  MissedSeconds missed_;
  double baseline_s_ = 0;
};

}  // namespace

ClosedForm closed_form_of(const StepModel& model, ForecastRequest request, std::span<const double> batches) {
  ClosedForm form{.backward_part = model.backward_part, .ready = {0}};
  for (const auto& bucket : model.buckets) form.ready.push_back(bucket.ready);
  request.step.mode = Mode::weak;
  for (const double batch : batches) {
    request.step.batch = batch;
    Forecaster(model, request).add_to(form);
  }
  return form;
}

Forecast forecast(const StepModel& model, const ForecastRequest& request) {
  return Forecaster(model, request).make();
}

}  // namespace paceline::analysis

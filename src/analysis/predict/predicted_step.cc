#include "analysis/predict/predicted_step.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "base/error.h"

namespace paceline::analysis {
namespace {

std::size_t place_in_draw(std::int64_t workers, const DrawnInputs& inputs) {
  const auto found = std::ranges::lower_bound(inputs.workers, workers);
  base::expects(found != inputs.workers.end() && *found == workers, "the number of workers was asked for");
  return static_cast<std::size_t>(found - inputs.workers.begin());
}

/// What a node's sharing does to the lines of the fewest workers.
struct Sharing {
  double compute = 1;  ///< factor
  StepLines beyond;    ///< seconds more, of the other lines
};

Sharing sharing_of(const StepModel& model, int width, double batch, std::optional<std::size_t> draw) {
  Sharing sharing;
  const MeasuredStep* step = model.nearest(width, batch);
  if (step == nullptr) return sharing;
  const auto alone = model.alone(step->batch).at(draw);
  const auto& shared = draw ? step->drawn(*draw) : step->middle;
  if (alone[Line::compute] > 0) sharing.compute = shared[Line::compute] / alone[Line::compute];
  for (const Line line : {Line::data_wait, Line::copy, Line::update, Line::other}) {
    const bool is_of_samples = line == Line::data_wait || line == Line::copy;
    sharing.beyond[line] = (shared[line] - alone[line]) * (is_of_samples ? batch / step->batch : 1);
  }
  return sharing;
}

/// Between measured widths in proportion; above the widest as that one.
Sharing sharing_at(const StepModel& model, int width, double batch, std::optional<std::size_t> draw) {
  int below = model.steps.front().width, above = 0;
  for (const auto& step : model.steps) {
    if (step.workers == model.fewest()) continue;
    if (step.width <= width) below = std::max(below, step.width);
    if (step.width >= width && (above == 0 || step.width < above)) above = step.width;
  }
  const Sharing low = sharing_of(model, below, batch, draw);
  if (above == 0 || above == below) return low;
  const Sharing high = sharing_of(model, above, batch, draw);
  const double part = static_cast<double>(width - below) / (above - below);
  Sharing between{.compute = low.compute + part * (high.compute - low.compute), .beyond = {}};
  between.beyond += low.beyond.scaled(1 - part);
  between.beyond += high.beyond.scaled(part);
  return between;
}

double sum_of_own(const StepLines& lines) {
  double sum = 0;
  for (const Line line : {Line::compute, Line::data_wait, Line::copy, Line::update, Line::other})
    sum += lines[line];
  return sum;
}

/// How much longer the slowest of `workers` works than one does, in the mean. Without a spread nothing is
/// computed: forecasts ask this for each number of workers and each draw.
double factor_of_spread(const Range& spread, double workers) {
  return spread.middle() == 0 ? 1 : 1 + spread.middle() * largest_normal(workers);
}

}  // namespace

std::string_view name(DataSource source) {
  constexpr std::array<std::string_view, 5> kNames{"", "loader", "disk of the node", "shared storage",
                                                   "opening files"};
  return kNames[static_cast<std::size_t>(source)];
}

StepPredictor::StepPredictor(const StepModel& model, const StepRequest& request, const WhatIf& what_if,
                             int width, const Cluster& links, bool is_as_measured)
    : model_(model),
      request_(request),
      what_if_(what_if),
      width_(model.is_ghost ? 1 : width),
      links_(links),
      is_as_measured_(is_as_measured) {
  for (const auto& step : model.steps)
    if (step.workers > 1 && !step.is_without_exchange &&
        (most_ == nullptr || step.workers > most_->workers ||
         (step.workers == most_->workers && request_.distance(step) < request_.distance(*most_))))
      most_ = &step;
}

bool StepPredictor::knows_link(std::int64_t workers) const {
  if (workers == 1 || (is_as_measured_ && most_ != nullptr && workers <= most_->workers)) return true;
  const bool is_between_nodes = links_.nodes_of(static_cast<int>(workers)) > 1;
  if (links_.emulated && (is_between_nodes || !links_.emulated->between_nodes)) return true;
  return is_between_nodes ? links_.network.exists() : links_.node_link.exists();
}

StepPredictor::Own StepPredictor::own_of(double workers, double batch, const DrawnInputs& inputs) const {
  Own own{.lines = model_.alone(batch).at(inputs.lines)};
  const double speed = what_if_.compute * inputs.cluster.worker_speed.middle();
  for (const Line line : {Line::compute, Line::copy, Line::update, Line::other}) own.lines[line] /= speed;
  own.alone_compute_s = own.lines[Line::compute];
  // What a step waited although its loader was fast enough: taking a batch from the queue, single late ones.
  // The loader worked beside the rest of the measured step, before what-ifs.
  const auto with_queue = [&] {
    const double data_wait = own.lines[Line::data_wait],
                 measured_rest = speed * (sum_of_own(own.lines) - data_wait);
    own.queue_s = std::max(0.0, data_wait - std::max(0.0, model_.loader_s_a_sample * batch - measured_rest));
    return own;
  };
  if (workers <= model_.fewest()) return with_queue();
  const int on_node = static_cast<int>(std::min<double>(workers, width_));
  const auto sharing = sharing_at(model_, on_node, batch, inputs.lines);
  own.lines[Line::compute] *= sharing.compute;
  for (const Line line : {Line::data_wait, Line::copy, Line::update, Line::other})
    own.lines[line] = std::max(0.0, own.lines[line] + sharing.beyond[line]);
  return with_queue();
}

double StepPredictor::wait_for_data(const PredictedStep& step, const Own& own, double workers, double batch,
                                    const DrawnInputs& inputs, DataSource& source) const {
  const double rest = step.seconds - own.lines[Line::data_wait];
  double needed = model_.loader_s_a_sample * batch / what_if_.loader;
  source = DataSource::loader;
  const auto consider = [&](double seconds, DataSource one) {
    if (seconds > needed) {
      needed = seconds;
      source = one;
    }
  };
  if (inputs.cluster.storage) {
    const auto& storage = *inputs.cluster.storage;
    const double bytes = batch * model_.stored_bytes;
    if (storage.node_bytes_per_s.high > 0)
      consider(std::min<double>(workers, width_) * bytes / storage.node_bytes_per_s.middle(),
               DataSource::node_disk);
    if (storage.shared_bytes_per_s.high > 0)
      consider(workers * bytes / storage.shared_bytes_per_s.middle(), DataSource::shared_storage);
    if (storage.opens_per_s.high > 0 && model_.stored_bytes > 0)
      consider(workers * batch / storage.opens_per_s.middle(), DataSource::opens);
  }
  const double wait = std::max(0.0, needed - rest);
  if (wait == 0) source = DataSource::none;
  return own.queue_s + wait;
}

StepPredictor::Reductions StepPredictor::reductions_of(std::int64_t workers,
                                                       const DrawnInputs& inputs) const {
  Reductions all;
  if (workers <= 1 || !knows_link(workers)) return all;
  const auto ranks = static_cast<int>(workers);
  double largest_bytes = 0;
  const std::vector<double> factors =
      inputs.reductions.empty() ? std::vector<double>() : inputs.reductions[place_in_draw(workers, inputs)];
  all.added_latency_s = all_reduce_cost(inputs.cluster, ranks, 0).emulated_s;
  for (const auto& bucket : model_.buckets) {
    const auto cost = all_reduce_cost(inputs.cluster, ranks, bucket.bytes);
    all.whole_s.push_back(cost.seconds * (factors.empty() ? 1 : factors[all.whole_s.size()]));
    all.latency_s.push_back(std::min(all.whole_s.back(), cost.latency_s + all.added_latency_s));
    all.moving_s.push_back(all.whole_s.back() - all.latency_s.back());
    if (bucket.bytes >= largest_bytes) all.algorithm = cost.algorithm;
    largest_bytes = std::max(largest_bytes, bucket.bytes);
  }
  // The votes are on the link before the first bucket.
  if (model_.vote_bytes <= 0) return all;
  const auto votes = all_reduce_cost(inputs.cluster, ranks, model_.vote_bytes);
  all.votes_s = votes.seconds;
  all.votes_latency_s = std::min(votes.seconds, votes.latency_s + all.added_latency_s);
  return all;
}

StepFigures StepPredictor::figures(std::int64_t workers, const DrawnInputs& inputs) const {
  const auto number = static_cast<double>(workers);
  const double batch = request_.local_batch(number);
  const auto own = own_of(number, batch, inputs);
  const auto reductions = reductions_of(workers, inputs);
  StepFigures figures;
  figures.own = {own.lines[Line::compute], sum_of_own(own.lines), own.lines[Line::data_wait], own.queue_s};
  figures.loader_s = model_.loader_s_a_sample * batch / what_if_.loader;
  auto& form = figures.of_workers;
  form.workers = workers;
  const double spread = factor_of_spread(inputs.cluster.worker_spread, number);
  for (const double factor : inputs.largest[place_in_draw(workers, inputs)].parts)
    form.largest.push_back(factor * spread);
  if (reductions.whole_s.empty()) return figures;
  form.latency_s = {reductions.votes_latency_s};
  form.moving_s = {reductions.votes_s - reductions.votes_latency_s};
  std::ranges::copy(reductions.latency_s, std::back_inserter(form.latency_s));
  std::ranges::copy(reductions.moving_s, std::back_inserter(form.moving_s));
  return figures;
}

PredictedStep StepPredictor::bare(std::int64_t workers, double batch, const DrawnInputs& inputs,
                                  bool with_parts) const {
  const auto number = static_cast<double>(workers);
  const auto own = own_of(number, batch, inputs);
  const double compute = own.lines[Line::compute], work = sum_of_own(own.lines);
  PredictedStep step;
  const auto reductions = reductions_of(workers, inputs);
  const auto &whole = reductions.whole_s, &moving = reductions.moving_s, &latency = reductions.latency_s;
  step.algorithm = reductions.algorithm;
  step.reduce_s = std::accumulate(whole.begin(), whole.end(), 0.0);
  // The step of a largest worker that takes `factor` times the typical own work; what is more is compute.
  std::vector<ReplayedBucket> replay(whole.size() + 1);
  const auto exposed_at = [&](double factor, const std::vector<double>& seconds) {
    const double backward = model_.backward_part * (compute + (factor - 1) * work);
    replay.front() = {.ready_s = 0, .transfer_s = &seconds == &moving ? 0 : reductions.votes_s};
    for (std::size_t i = 0; i < seconds.size(); ++i)
      replay[i + 1] = {.ready_s = backward * model_.buckets[i].ready, .transfer_s = seconds[i]};
    return exposed_seconds(replay, backward);
  };
  const auto& largest = inputs.largest[place_in_draw(workers, inputs)];
  const double spread = factor_of_spread(inputs.cluster.worker_spread, number);
  const auto waited = [&](double factor) { return (factor - 1) * work + exposed_at(factor, whole); };
  double mean_wait = 0;
  for (const double factor : largest.parts) mean_wait += waited(factor * spread) / LargestFactor::kParts;
  const double exposed = exposed_at(1, whole);
  step.seconds = work + mean_wait;
  step.own_s = work - own.lines[Line::data_wait];
  step.exposed_s = exposed;
  DataSource source = DataSource::none;
  const double data_wait = wait_for_data(step, own, number, batch, inputs, source);
  step.seconds += data_wait - own.lines[Line::data_wait];
  step.waits_for = source;
  if (!with_parts) return step;

  const auto set = [&](LossPart part, double seconds) {
    step.parts[static_cast<std::size_t>(part)] = seconds;
  };
  const double slow = workers == 1 ? 1 : std::max(1.0, model_.own.slowest_factor) * spread;
  const double at_slowest = std::min(mean_wait, waited(slow));
  set(LossPart::imbalance, workers == 1 ? 0 : std::max(0.0, at_slowest - exposed));
  set(LossPart::jitter, workers == 1 ? 0 : mean_wait - std::max(exposed, at_slowest));
  const double latency_first = exposed_at(1, latency), latency_last = exposed - exposed_at(1, moving);
  set(LossPart::latency, (latency_first + latency_last) / 2);
  set(LossPart::transfer, exposed - (latency_first + latency_last) / 2);
  set(LossPart::smaller_batch, own.alone_compute_s);  // the caller takes the baseline's away
  set(LossPart::sharing, compute - own.alone_compute_s);
  set(LossPart::data_wait, data_wait);
  for (const LossPart part : {LossPart::copy, LossPart::update, LossPart::other})
    set(part, own.lines[line_of(part)]);
  return step;
}

MissedSeconds StepPredictor::missed(const DrawnInputs& inputs, bool with_parts) const {
  MissedSeconds missed;
  if (most_ == nullptr) return missed;
  const auto& lines = inputs.lines ? most_->drawn(*inputs.lines) : most_->middle;
  const auto step = bare(most_->workers, most_->batch, inputs, with_parts);
  missed.seconds = lines.total() - step.seconds;
  if (!with_parts) return missed;
  for (const LossPart part : {LossPart::imbalance, LossPart::jitter, LossPart::latency, LossPart::transfer})
    missed.parts[static_cast<std::size_t>(part)] = lines[line_of(part)] - step.part(part);
  return missed;
}

PredictedStep StepPredictor::step(std::int64_t workers, const DrawnInputs& inputs,
                                  const MissedSeconds& missed, bool with_parts) const {
  const auto number = static_cast<double>(workers), fewest = static_cast<double>(model_.fewest());
  auto step = bare(workers, request_.local_batch(number), inputs, with_parts);
  if (workers > 1) {
    step.missed_s = missed.seconds;
    step.seconds += missed.seconds;
  }
  if (!with_parts) return step;
  const double share = request_.mode == Mode::weak ? 1 : fewest / number;
  const auto baseline = bare(model_.fewest(), request_.local_batch(fewest), inputs, true);
  step.ideal_s = share * (baseline.seconds + (model_.fewest() > 1 ? missed.seconds : 0));
  for (std::size_t part = 0; part < kLossParts; ++part) {
    if (workers > 1) step.parts[part] += missed.parts[part];
    step.parts[part] -= share * (baseline.parts[part] + (model_.fewest() > 1 ? missed.parts[part] : 0));
  }
  const double told = step.ideal_s + std::accumulate(step.parts.begin(), step.parts.end(), 0.0);
  step.parts[static_cast<std::size_t>(LossPart::other_wait)] += step.seconds - told;
  return step;
}

}  // namespace paceline::analysis

#include "analysis/steps/step_lines.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "analysis/compare/cell.h"
#include "base/error.h"

namespace paceline::analysis {

double exposed_seconds(std::span<const ReplayedBucket> buckets, double backward_s) {
  double end = 0;
  for (const auto& bucket : buckets) end = std::max(bucket.ready_s, end) + bucket.transfer_s;
  return std::max(0.0, end - backward_s);
}

std::optional<BucketLink> line_of_times(std::span<const TimedMessage> messages) {
  // Weighted by 1 / t^2, so that errors are relative: sums of 1, X, X^2, t, X t.
  double w = 0, x = 0, xx = 0, t = 0, xt = 0;
  for (const auto& [bytes, seconds] : messages) {
    const double weight = 1 / (seconds * seconds);
    w += weight;
    x += weight * bytes;
    xx += weight * bytes * bytes;
    t += weight * seconds;
    xt += weight * bytes * seconds;
  }
  const double determinant = w * xx - x * x;
  if (!(determinant > 0)) return std::nullopt;
  const double alpha = (xx * t - x * xt) / determinant, slope = (w * xt - x * t) / determinant;
  // A value that no link can have is set to 0, and the other is fitted again.
  if (alpha < 0) return BucketLink{.alpha_s = 0, .seconds_per_byte = xt / xx};
  if (slope < 0) return BucketLink{.alpha_s = t / w, .seconds_per_byte = 0};
  return BucketLink{.alpha_s = alpha, .seconds_per_byte = slope};
}

std::optional<BucketLink> fit_buckets(std::span<const TimedMessage> buckets) {
  constexpr double kApart = 2;
  std::vector<TimedMessage> timed;
  std::ranges::copy_if(buckets, std::back_inserter(timed),
                       [](const TimedMessage& one) { return one.bytes > 0 && one.seconds > 0; });
  if (timed.empty()) return std::nullopt;
  const auto [smallest, largest] = std::ranges::minmax(timed, {}, &TimedMessage::bytes);
  return largest.bytes < kApart * smallest.bytes ? std::nullopt : line_of_times(timed);
}

namespace {

/// When the first `bytes` of the gradient are final.
double ready_of(std::span<const double> ends, std::span<const double> ready_s, double bytes) {
  const auto at = static_cast<std::size_t>(std::ranges::lower_bound(ends, bytes) - ends.begin());
  if (at >= ends.size()) return ready_s.back();
  const double begin = at == 0 ? 0 : ends[at - 1], before = at == 0 ? 0 : ready_s[at - 1];
  const double part = ends[at] > begin ? (bytes - begin) / (ends[at] - begin) : 1;
  return before + part * (ready_s[at] - before);
}

using measure::Phase;
using measure::RankRecord;
using measure::Record;

/// Seconds of the rank's own work in the window, by the ledger.
double own_of_ledger(const RankRecord& rank) {
  using enum measure::Phase;
  return seconds_in(rank, {data_wait, copy, forward, backward, update, other});
}

bool has_own(const Record& record) {
  const std::size_t steps = record.ranks.front().step_s.size();
  return steps > 0 && std::ranges::all_of(record.ranks, [&](const RankRecord& rank) {
           return rank.own_s && rank.own_s->size() == steps && rank.step_s.size() == steps;
         });
}

/// The latency part of one step's exposed time, the rest being transfer: the mean of what latency adds when
/// it comes first and when it comes last.
double latency_of(const std::vector<ReplayedBucket>& whole, double backward_s, double alpha_s) {
  auto latency = whole, moving = whole;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    latency[i].transfer_s = std::min(whole[i].transfer_s, alpha_s);
    moving[i].transfer_s = whole[i].transfer_s - latency[i].transfer_s;
  }
  const double all = exposed_seconds(whole, backward_s);
  return (exposed_seconds(latency, backward_s) + all - exposed_seconds(moving, backward_s)) / 2;
}

}  // namespace

std::vector<ReplayedBucket> cut_buckets(std::span<const double> ends, std::span<const double> ready_s,
                                        double bucket_bytes, const BucketLink& link) {
  base::expects(!ends.empty() && ends.size() == ready_s.size(), "every bucket has an end and a time");
  base::expects(bucket_bytes > 0, "a bucket holds something");
  std::vector<ReplayedBucket> buckets;
  const double whole = ends.back();
  for (double begin = 0; begin < whole;) {
    const double end = std::min(whole, begin + bucket_bytes);
    buckets.push_back({.ready_s = ready_of(ends, ready_s, end), .transfer_s = link.seconds(end - begin)});
    begin = end;
  }
  return buckets;
}

double StepLines::total() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

StepLines& StepLines::operator+=(const StepLines& other) {
  for (std::size_t i = 0; i < kLines; ++i) seconds[i] += other.seconds[i];
  return *this;
}

StepLines StepLines::scaled(double factor) const {
  StepLines result = *this;
  for (double& one : result.seconds) one *= factor;
  return result;
}

std::optional<BucketTimes> bucket_times(const Record& record) {
  if (record.workers < 2 || record.buckets.empty() || record.ranks.empty() || record.window.steps <= 0)
    return std::nullopt;
  std::size_t steps = record.buckets.front().transfer_s.size();
  for (const auto& bucket : record.buckets) {
    if (!bucket.ready_s) return std::nullopt;
    steps = std::min({steps, bucket.ready_s->size(), bucket.transfer_s.size()});
  }
  if (steps == 0) return std::nullopt;
  BucketTimes times;
  std::vector<TimedMessage> transfers;
  const auto mean_of = [steps](const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(steps), 0.0) /
           static_cast<double>(steps);
  };
  double end = 0;
  for (const auto& bucket : record.buckets) {
    times.ends.push_back(end += static_cast<double>(bucket.bytes));
    times.ready_s.push_back(mean_of(*bucket.ready_s));
    times.transfer_s.push_back(mean_of(bucket.transfer_s));
    transfers.push_back({.bytes = static_cast<double>(bucket.bytes), .seconds = times.transfer_s.back()});
  }
  times.backward_s =
      seconds_in(record.ranks.front(), Phase::backward) / static_cast<double>(record.window.steps);
  times.link = fit_buckets(transfers);
  // In every step the backward pass takes equally long after its last bucket.
  const double behind = std::max(0.0, times.backward_s - times.ready_s.back());
  double latency = 0;
  std::vector<ReplayedBucket> buckets(record.buckets.size());
  for (std::size_t step = 0; step < steps; ++step) {
    for (std::size_t i = 0; i < buckets.size(); ++i)
      buckets[i] = {.ready_s = (*record.buckets[i].ready_s)[step],
                    .transfer_s = record.buckets[i].transfer_s[step]};
    const double backward = buckets.back().ready_s + behind;
    times.replayed_s += exposed_seconds(buckets, backward) / static_cast<double>(steps);
    if (times.link)
      latency += latency_of(buckets, backward, times.link->alpha_s) / static_cast<double>(steps);
  }
  if (times.replayed_s > 0) times.latency_share = std::clamp(latency / times.replayed_s, 0.0, 1.0);
  return times;
}

SampledSteps::SampledSteps(const Record& record) {
  base::expects(!record.ranks.empty() && record.window.steps > 0, "the record is measured");
  knows_own_ = has_own(record);
  choose_ranks(record);
  add_blocks(record);
  const RankRecord& rank = record.ranks[typical_];
  const double a_step = 1 / static_cast<double>(record.window.steps);
  const auto mean = [&](Phase phase) { return a_step * seconds_in(rank, phase); };
  lines_[Line::compute] = mean(Phase::forward) + mean(Phase::backward);
  lines_[Line::data_wait] = mean(Phase::data_wait);
  lines_[Line::copy] = mean(Phase::copy);
  lines_[Line::update] = mean(Phase::update);
  lines_[Line::other] = mean(Phase::other);
  const auto buckets = bucket_times(record);
  knows_latency_ = buckets && buckets->link;
  const double exposed = mean(Phase::exposed_transfer);
  lines_[Line::latency] = knows_latency_ ? buckets->latency_share * exposed : 0;
  lines_[Line::transfer] = exposed - lines_[Line::latency];
  wait_s_ = mean(Phase::exposed_wait);
  double imbalance = a_step * (own_of_ledger(record.ranks[slowest_]) - own_of_ledger(rank)), jitter = 0;
  if (knows_own_) {
    double steps = 0, most = 0, slowest = 0, typical = 0;
    for (const Block& block : blocks_) {
      steps += block.steps;
      most += block.most_own_s;
      slowest += block.own_s[slowest_];
      typical += block.own_s[typical_];
    }
    imbalance = (slowest - typical) / steps;
    jitter = (most - slowest) / steps;
  }
  split_waiting(lines_, wait_s_, imbalance, jitter);
}

void SampledSteps::split_waiting(StepLines& lines, double wait, double imbalance, double jitter) const {
  lines[Line::imbalance] = imbalance;
  lines[Line::jitter] = jitter;
  lines[Line::other_wait] = wait - imbalance - jitter;
}

void SampledSteps::choose_ranks(const Record& record) {
  std::vector<double> own;
  for (const RankRecord& rank : record.ranks)
    own.push_back(knows_own_ ? std::accumulate(rank.own_s->begin(), rank.own_s->end(), 0.0)
                             : own_of_ledger(rank));
  std::vector<std::size_t> order(own.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return own[a] < own[b]; });
  typical_ = order[(order.size() - 1) / 2];
  slowest_ = order.back();
}

void SampledSteps::add_blocks(const Record& record) {
  constexpr std::size_t kBlock = 5, kMostBlocks = 200;
  std::size_t steps = record.ranks.front().step_s.size();
  for (const auto& rank : record.ranks) steps = std::min(steps, rank.step_s.size());
  const std::size_t length = std::max(kBlock, (steps + kMostBlocks - 1) / kMostBlocks);
  for (std::size_t step = 0; step < steps; ++step) {
    if (step % length == 0) blocks_.emplace_back().own_s.resize(knows_own_ ? record.ranks.size() : 0);
    Block& block = blocks_.back();
    block.steps += 1;
    block.step_s += record.ranks[typical_].step_s[step];
    if (!knows_own_) continue;
    double most = 0;
    for (std::size_t rank = 0; rank < record.ranks.size(); ++rank) {
      const double own = (*record.ranks[rank].own_s)[step];
      block.own_s[rank] += own;
      most = std::max(most, own);
    }
    block.most_own_s += most;
  }
}

StepLines SampledSteps::draw(base::Rng& rng) const {
  if (blocks_.empty()) return lines_;
  Block sum{.own_s = std::vector<double>(blocks_.front().own_s.size())};
  Block all = sum;
  const auto add = [](Block& to, const Block& block) {
    to.steps += block.steps;
    to.step_s += block.step_s;
    to.most_own_s += block.most_own_s;
    for (std::size_t i = 0; i < to.own_s.size(); ++i) to.own_s[i] += block.own_s[i];
  };
  for (const Block& block : blocks_) {
    add(all, block);
    add(sum, blocks_[rng.below(static_cast<std::uint32_t>(blocks_.size()))]);
  }
  const double step = (sum.step_s / sum.steps) / (all.step_s / all.steps);
  StepLines drawn = lines_;
  if (!knows_own_) return drawn.scaled(step);
  const auto mean_own = [&](const Block& block, std::size_t rank) { return block.own_s[rank] / block.steps; };
  const double own = mean_own(sum, typical_), own_before = mean_own(all, typical_);
  const double exposed = sum.step_s / sum.steps - own, exposed_before = all.step_s / all.steps - own_before;
  for (const Line line : {Line::compute, Line::data_wait, Line::copy, Line::update, Line::other})
    drawn[line] *= own / own_before;
  const double factor = exposed_before > 0 && exposed > 0 ? exposed / exposed_before : 1;
  drawn[Line::latency] *= factor;
  drawn[Line::transfer] *= factor;
  double most_mean = 0;
  for (std::size_t rank = 0; rank < sum.own_s.size(); ++rank)
    most_mean = std::max(most_mean, mean_own(sum, rank));
  split_waiting(drawn, factor * wait_s_, most_mean - own, sum.most_own_s / sum.steps - most_mean);
  return drawn;
}

}  // namespace paceline::analysis

#include "train/step/step.h"

#include <cmath>
#include <utility>

#include "base/error.h"
#include "train/given/resolve.h"

namespace paceline::train {

std::int64_t ShardSums::arrays(std::int64_t shards) {
  // The last shard's gradient is joined in place, so it needs no array.
  return base::TreeCounter::levels(shards);
}

ShardSums::ShardSums(std::int64_t shards, base::Array gradient) : shards_(shards) {
  for (std::int64_t i = 0; i < arrays(shards); ++i)
    levels_.push_back(gradient.memory->allocate(gradient.size));
}

// Sums are left + right in the tree's order. With two operands the order cannot change the bits, but it keeps
// NaN payloads and readers calm.

void ShardSums::add(base::Array gradient) {
  base::expects(counter_.count() + 1 < shards_, "the last shard of a step is joined, not added");
  const auto target = kept(counter_.next_level());
  if (counter_.next_level() == 0) gradient.memory->copy(gradient, target);
  counter_.add([&](int level) {
    gradient.memory->add(kept(level), gradient, target);
    gradient = target;
  });
}

void ShardSums::join_last(base::Array gradient, std::int64_t begin, std::int64_t end) const {
  base::expects(counter_.count() + 1 == shards_, "every shard but the last was added");
  const auto first = static_cast<std::size_t>(begin), count = static_cast<std::size_t>(end - begin);
  const auto part = gradient.subarray(first, count);
  counter_.join_last(
      [&](int level) { gradient.memory->add(kept(level).subarray(first, count), part, part); });
}

const data::Batch& WaitedSteps::next_batch(data::Loader* loader, const Counters& done, StepOrder& order) {
  order.begin = base::Clock::now();
  ledger_.enter(measure::Phase::data_wait);
  communicator_.at(order.update + 1, "waiting for data");
  const data::Batch* own = loader != nullptr ? &loader->next() : nullptr;
  order.has_batch = base::Clock::now();
  ledger_.enter(measure::Phase::other);
  return part_of(own, done);
}

void WaitedSteps::post(const data::Batch& batch, const StepOrder& order) {
  base::expects(!waited_, "a step is taken before another is posted");
  waited_ =
      TakenStep{.order = order, .epoch = batch.epoch, .result = run(batch, order), .begin = order.begin};
}

TakenStep WaitedSteps::take() {
  base::expects(waited_.has_value(), "a step is taken that was posted");
  return *std::exchange(waited_, std::nullopt);
}

Votes WaitedSteps::votes_of(const engine::LossSums& sums, const StepOrder& order) const {
  return {.stop = job_.stop.stop_requested(),
          .not_finite = !std::isfinite(sums.loss),
          .enough = order.enough,
          .loss = sums.loss};
}

double WaitedSteps::apply_update(const StepOrder& order) {
  engine_.update(rule_of_update(job_.options, job_.resolved.rate.peak, order.update, job_.resolved.length),
                 order.lr, order.update + 1);
  return job_.options.rule.clips() ? engine_.gradient_norm() : 0;
}

Stepper::Stepper(const Job& job, engine::Engine& engine, comm::Communicator& communicator,
                 measure::Ledger& ledger, CollectiveLog& log, LossGuard& guard, double bucket_mb)
    : WaitedSteps(job, engine, communicator, ledger, log, guard),
      buckets_(cut_buckets(engine.layout(), static_cast<std::int64_t>(bucket_mb * 1e6))),
      exchanges_(communicator.size() > 1 && !job.options.no_exchange),
      reducer_(buckets_, communicator),
      shard_sums_(job.resolved.shards_per_worker, engine.gradients()) {
  engine_.cut_backward(buckets_.ends);
}

engine::LossSums Stepper::forward_and_backward(const data::Batch& batch, const StepOrder& order) {
  const auto gradients = engine_.gradients();
  const std::int64_t shards = job_.resolved.shards_per_worker;
  engine::LossSums sums;
  ready_buckets_ = 0;
  backward_before_s_ = 0;
  for (std::int64_t shard = 0; shard < shards; ++shard) {
    const bool last = shard + 1 == shards;
    ledger_.enter(measure::Phase::forward);
    communicator_.at(order.update + 1, "forward");
    sums += engine_.forward(shard_input(batch, job_.resolved, shard, order.update));
    if (last && communicator_.size() > 1) {
      // The votes are summed in a small all-reduce beside the gradients, which is done long before the step
      // ends.
      control_ = as_floats(votes_of(sums, order));
      control_pending_ = communicator_.all_reduce(control_);
      if (exchanges_) reducer_.begin(gradients);
    }
    ledger_.enter(measure::Phase::backward);
    communicator_.at(order.update + 1, "backward");
    backward_begin_ = base::Clock::now();
    if (!last) {
      engine_.backward([](std::int64_t) {});
      shard_sums_.add(gradients);
      backward_before_s_ += base::seconds_since(backward_begin_);
    } else if (exchanges_) {
      const auto join = [&](std::int64_t begin, std::int64_t end) {
        shard_sums_.join_last(gradients, begin, end);
      };
      engine_.backward([&](std::int64_t ready) {
        note_ready(ready);
        reducer_.ready(ready, shards > 1 ? join : std::function<void(std::int64_t, std::int64_t)>{});
      });
    } else {
      engine_.backward([this](std::int64_t ready) { note_ready(ready); });
      if (shards > 1) shard_sums_.join_last(gradients, 0, engine_.layout().elements);
    }
  }
  shard_sums_.clear();
  return sums;
}

void Stepper::begin_window(std::vector<measure::BucketRecord>& records, std::size_t steps, bool keeps_ready) {
  ready_records_ = begin_records(records, buckets_, steps, keeps_ready);
}

void Stepper::note_ready(std::int64_t ready) {
  if (ready_buckets_ == ready_records_.size() || buckets_.ends[ready_buckets_] > ready) return;
  const double seconds = backward_before_s_ + base::seconds_since(backward_begin_);
  for (; ready_buckets_ < ready_records_.size() && buckets_.ends[ready_buckets_] <= ready; ++ready_buckets_)
    add_ready_time(ready_records_[ready_buckets_], seconds);
}

Votes Stepper::agree(const engine::LossSums& local, const StepOrder& order) {
  if (communicator_.size() == 1) return votes_from(as_floats(votes_of(local, order)));
  communicator_.at(order.update + 1, "the reduction of gradients");
  ledger_.enter(
      measure::Phase::exposed_transfer);  // the part that was waiting is separated later (exposed_comm.h)
  log_.begin_blocked();
  if (exchanges_) reducer_.wait(log_.timings());
  control_pending_->wait();
  control_pending_.reset();
  log_.end_blocked();
  return votes_from(control_);
}

StepResult Stepper::run(const data::Batch& batch, const StepOrder& order) {
  StepResult result{.local = forward_and_backward(batch, order)};
  result.all = agree(result.local, order);
  result.verdict = guard_.see(result.all);
  ledger_.enter(measure::Phase::update);
  if (result.is_updated()) result.gradient_norm = apply_update(order);
  ledger_.enter(measure::Phase::other);
  return result;
}

}  // namespace paceline::train

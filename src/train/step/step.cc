#include "train/step/step.h"

#include <cmath>
#include <utility>

#include "base/error.h"
#include "train/given/resolve.h"

namespace paceline::train {

std::int64_t ShardSums::arrays(std::int64_t passes, PassOrder order) {
  // The last pass's gradient is joined in place, so it needs no array.
  if (order == PassOrder::one_by_one) return passes > 1 ? 1 : 0;
  return base::TreeCounter::levels(passes);
}

ShardSums::ShardSums(std::int64_t passes, base::Array gradient, PassOrder order)
    : passes_(passes), order_(order) {
  for (std::int64_t i = 0; i < arrays(passes, order); ++i)
    levels_.push_back(gradient.memory->allocate(gradient.size));
}

// Sums are left + right in the tree's order. With two operands the order cannot change the bits, but it keeps
// NaN payloads and readers calm.

void ShardSums::add(base::Array gradient) {
  base::expects(added_ + 1 < passes_, "the last pass of a step is joined, not added");
  ++added_;
  const base::Memory& memory = *gradient.memory;
  if (order_ == PassOrder::one_by_one)
    return added_ == 1 ? memory.copy(gradient, kept(0)) : memory.add(kept(0), gradient, kept(0));
  const auto target = kept(counter_.next_level());
  if (counter_.next_level() == 0) memory.copy(gradient, target);
  counter_.add([&](int level) {
    memory.add(kept(level), gradient, target);
    gradient = target;
  });
}

void ShardSums::join_last(base::Array gradient, std::int64_t begin, std::int64_t end) const {
  base::expects(added_ + 1 == passes_, "every pass but the last was added");
  const auto first = static_cast<std::size_t>(begin), count = static_cast<std::size_t>(end - begin);
  const auto part = gradient.subarray(first, count);
  const auto join = [&](int level) { gradient.memory->add(kept(level).subarray(first, count), part, part); };
  if (order_ == PassOrder::tree)
    counter_.join_last(join);
  else if (passes_ > 1)
    join(0);
}

void ShardSums::clear() {
  added_ = 0;
  counter_.clear();
}

SquaresSchedule::SquaresSchedule(const Job& job) {
  const Resolved& resolved = job.resolved;
  const bool sums = !is_data_parallel(job.options) && !job.options.no_exchange;
  if (job.options.window_steps != 0 || !sums || resolved.engine_batch == resolved.global_batch) return;
  every_ = job.options.noise_scale;
  small_batch_ = resolved.engine_batch;
  large_batch_ = resolved.global_batch;
  parts_ = static_cast<double>(large_batch_) / static_cast<double>(small_batch_);
}

std::optional<measure::GradientSquares> SquaresSchedule::described() const {
  if (every_ == 0) return std::nullopt;
  return measure::GradientSquares{.every = every_, .small_batch = small_batch_, .large_batch = large_batch_};
}

void StepRunner::begin_window(std::vector<measure::BucketRecord>& records, std::size_t steps,
                              bool keeps_ready) {
  base::expects(is_empty(), "a window begins when all steps before it are taken");
  if (buckets() != nullptr) ready_records_ = begin_records(records, *buckets(), steps, keeps_ready);
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

Stepper::Stepper(const StepContext& in, double bucket_mb)
    : WaitedSteps(in),
      buckets_(cut_buckets(engine_.layout(), static_cast<std::int64_t>(bucket_mb * 1e6))),
      exchanges_(communicator_.size() > 1 && !job_.options.no_exchange),
      reducer_(buckets_, communicator_),
      shard_sums_(job_.resolved.passes_per_worker, engine_.gradients(), order_of_passes(job_.options)),
      squares_(job_) {
  engine_.cut_backward(buckets_.ends);
}

engine::LossSums Stepper::forward_and_backward(const data::Batch& batch, const StepOrder& order,
                                               double* small) {
  const auto gradients = engine_.gradients();
  const std::int64_t shards = job_.resolved.passes_per_worker, elements = engine_.layout().elements;
  // Gradients in [begin, end) are final, and no other shard's or worker's is added to them yet.
  const auto finish = [&](std::int64_t begin, std::int64_t end) {
    if (small != nullptr) *small += engine_.gradient_squares(begin, end);
    if (shards > 1) shard_sums_.join_last(gradients, begin, end);
  };
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
      if (small != nullptr) *small += engine_.gradient_squares(0, elements);
      shard_sums_.add(gradients);
      backward_before_s_ += base::seconds_since(backward_begin_);
    } else if (exchanges_) {
      engine_.backward([&](std::int64_t ready) {
        note_ready(ready);
        reducer_.ready(ready, finish);
      });
    } else {
      engine_.backward([this](std::int64_t ready) { note_ready(ready); });
      finish(0, elements);
    }
  }
  shard_sums_.clear();
  return sums;
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
  StepSquares squares;
  const bool is_squared = squares_.is_due(order.update);
  StepResult result{.local = forward_and_backward(batch, order, is_squared ? &squares.small : nullptr)};
  result.all = agree(result.local, order);
  result.verdict = guard_.see(result.all);
  ledger_.enter(measure::Phase::update);
  if (is_squared && result.is_updated()) {
    squares = {squares_.small_of(squares.small), engine_.gradient_squares(0, engine_.layout().elements)};
    result.squares = squares;
  }
  if (result.is_updated()) result.gradient_norm = apply_update(order);
  ledger_.enter(measure::Phase::other);
  return result;
}

}  // namespace paceline::train

#include "train/step/queued_steps.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "train/given/resolve.h"

namespace paceline::train {
namespace {

using engine::Stage;
using measure::Phase;

}  // namespace

Buckets with_votes(Buckets buckets, bool are_apart) {
  if (buckets.ends.empty())
    buckets.ends.push_back(0);
  else if (are_apart)
    buckets.ends.push_back(buckets.ends.back());
  buckets.ends.back() += static_cast<std::int64_t>(kVoteFloats);
  return buckets;
}

bool host_is_in_step(const Options& options, int workers) {
  const bool leaves_out = options.on_nan == OnNan::skip && options.window_steps == 0;
  const bool adds = options.batch_norm == engine::BatchNormMode::synchronised && workers > 1;
  return leaves_out || adds || is_data_parallel(options);
}

engine::StepQueue* queue_of(const Job& job, engine::Engine& engine) {
  return host_is_in_step(job.options, job.resolved.workers) ? nullptr : engine.step_queue();
}

QueuedStepper::QueuedStepper(const StepContext& in, engine::StepQueue& queue, double bucket_mb)
    : StepRunner(in),
      squares_(job_),
      queue_(queue),
      buckets_(with_votes(cut_buckets(engine_.layout(), static_cast<std::int64_t>(bucket_mb * 1e6)),
                          job_.options.gradients_as_bf16)),
      reducer_(buckets_, communicator_),
      shard_sums_(job_.resolved.passes_per_worker, engine_.gradients(), order_of_passes(job_.options)) {
  auto ends = buckets_.ends;
  ends.back() -= static_cast<std::int64_t>(kVoteFloats);
  engine_.cut_backward(ends);
}

bool QueuedStepper::is_full() const {
  return posted_.size() + read_.size() > static_cast<std::size_t>(queue_.lag());
}

std::int64_t QueuedStepper::vote_bytes() const {
  return static_cast<std::int64_t>(kVoteFloats * sizeof(float));
}

const data::Batch& QueuedStepper::next_batch(data::Loader* loader, const Counters& /*done*/,
                                             StepOrder& order) {
  order.begin = base::Clock::now();
  communicator_.at(order.update + 1, "waiting for data");
  const data::Batch& batch = loader->next();
  order.has_batch = base::Clock::now();
  return batch;
}

void QueuedStepper::mark_ready(std::int64_t ready, Posted& step) {
  if (ready_records_.empty()) return;
  const auto whole =
      static_cast<std::size_t>(std::ranges::upper_bound(buckets_.ends, ready) - buckets_.ends.begin());
  if (whole == (step.ready.empty() ? 0 : step.ready.back())) return;
  queue_.mark(Stage::bucket);
  step.ready.push_back(whole);
}

void QueuedStepper::run_passes(const data::Batch& batch, Posted& step) {
  const auto gradients = engine_.gradients();
  const std::int64_t elements = engine_.layout().elements, shards = job_.resolved.passes_per_worker;
  const bool is_alone = communicator_.size() == 1, is_squared = squares_.is_due(step.order.update);
  const engine::StepUpdate update{
      .rule = rule_of_update(job_.options, job_.resolved.rate.peak, step.order.update, job_.resolved.length),
      .lr = step.order.lr,
      .number = step.order.update + 1};
  for (std::int64_t shard = 0; shard < shards; ++shard) {
    communicator_.at(step.order.update + 1, "forward");
    queue_.forward(shard_input(batch, job_.resolved, shard, step.order.update),
                   {.stop = job_.stop.stop_requested(), .enough = step.order.enough}, update);
    communicator_.at(step.order.update + 1, "backward");
    if (shard + 1 < shards) {
      engine_.backward([](std::int64_t) {});
      if (is_squared) queue_.add_squares(engine::SquaresOf::passes, 0, elements);
      shard_sums_.add(gradients);
      continue;
    }
    const auto finish = [&](std::int64_t begin, std::int64_t end) {
      end = std::min(end, elements);  // votes lie behind them
      if (begin >= end) return;
      if (is_squared) queue_.add_squares(engine::SquaresOf::passes, begin, end);
      if (shards > 1) shard_sums_.join_last(gradients, begin, end);
    };
    if (!is_alone) reducer_.begin(queue_.gradients_and_votes());
    engine_.backward([&](std::int64_t ready) {
      // The votes are complete before any gradient.
      if (ready == elements) ready = buckets_.ends.back();
      mark_ready(ready, step);
      if (!is_alone) reducer_.ready(ready, finish);
    });
    if (is_alone) finish(0, elements);
  }
  shard_sums_.clear();
}

void QueuedStepper::post(const data::Batch& batch, const StepOrder& order) {
  base::expects(!is_full(), "a step is taken before another is posted");
  Posted step{.order = order, .epoch = batch.epoch, .is_first = posted_.empty()};
  run_passes(batch, step);
  if (communicator_.size() > 1) {
    communicator_.at(order.update + 1, "the reduction of gradients");
    step.sums = reducer_.wait();
  }
  if (squares_.is_due(order.update))
    queue_.add_squares(engine::SquaresOf::sums, 0, engine_.layout().elements);
  queue_.update();
  posted_.push_back(std::move(step));
}

TakenStep QueuedStepper::drop() {
  if (read_.empty()) read();
  const TakenStep step = read_.front();
  read_.pop_front();
  return step;
}

TakenStep QueuedStepper::take() {
  TakenStep step = drop();
  step.result.verdict = guard_.see(step.result.all);
  return step;
}

std::optional<GuardState> QueuedStepper::guard_when_empty() {
  while (!posted_.empty()) read();
  LossGuard guard = guard_;
  for (const TakenStep& step : read_)
    if (guard.see(step.result.all) == Verdict::diverged) return std::nullopt;
  return guard.state();
}

/// After a collective was abandoned the device continues on meaningless numbers. Whatever error it then
/// reports, the communicator knows the cause.
engine::QueuedStep QueuedStepper::collect() {
  try {
    engine::QueuedStep step = queue_.collect();
    communicator_.check();
    return step;
  } catch (const base::Error&) {
    communicator_.check();
    throw;
  }
}

void QueuedStepper::read() {
  base::expects(!posted_.empty(), "a step is read that was posted");
  const Posted posted = std::move(posted_.front());
  posted_.pop_front();
  communicator_.at(posted.order.update + 1, "the end of the step on its device");
  const engine::QueuedStep step = collect();
  TakenStep done{
      .order = posted.order,
      .epoch = posted.epoch,
      .result = {.local = step.local, .all = votes_from(step.votes), .gradient_norm = step.gradient_norm},
      .begin = posted.is_first ? posted.order.begin : last_end_,
      .end = base::TimePoint{}};
  if (squares_.is_due(posted.order.update))
    done.result.squares = {squares_.small_of(step.squares.front()), step.squares.back()};
  book(step, posted, done);
  last_end_ = *done.end;
  for (const auto& sum : posted.sums) log_.timings().push_back(sum->timing());
  note_ready(step, posted);
  read_.push_back(done);
}

void QueuedStepper::book(const engine::QueuedStep& step, const Posted& posted, TakenStep& done) {
  base::TimePoint booked{};
  bool is_first_pass = true;
  for (const auto& [until, at] : step.marks) switch (until) {
      case Stage::gap:  // the device was idle: book what the host did meanwhile
        if (is_first_pass) {
          ledger_.book(Phase::other, std::min(posted.order.begin, at));
          ledger_.book(Phase::data_wait, std::min(posted.order.has_batch, at));
          ledger_.book(Phase::other, at);
        } else {
          ledger_.book(Phase::backward, at);  // shards were added
        }
        is_first_pass = false;
        break;
      case Stage::copy:
        ledger_.book(Phase::copy, at);
        break;
      case Stage::forward:
        ledger_.book(Phase::forward, at);
        break;
      case Stage::bucket:
        break;
      case Stage::backward:
        booked = ledger_.book(Phase::backward, at);
        break;
      case Stage::transfer: {
        const auto begin = booked;
        booked = ledger_.book(communicator_.size() > 1 ? Phase::exposed_transfer : Phase::backward, at);
        if (communicator_.size() > 1) {
          log_.add_blocked(begin, booked);
          done.blocked_s = base::seconds(booked - begin);
        }
        break;
      }
      case Stage::update:
        done.end = ledger_.book(Phase::update, at);
        break;
    }
}

void QueuedStepper::note_ready(const engine::QueuedStep& step, const Posted& posted) {
  double before_s = 0;  // of earlier shards
  base::TimePoint begin{};
  std::size_t mark = 0, bucket = 0;
  for (const auto& [until, at] : step.marks) {
    if (until == Stage::forward) begin = at;
    if (until == Stage::backward) before_s += base::seconds(at - begin);
    if (until != Stage::bucket) continue;
    const std::size_t whole = posted.ready[mark++];
    for (; bucket < whole; ++bucket)
      add_ready_time(ready_records_[bucket], before_s + base::seconds(at - begin));
  }
}

}  // namespace paceline::train

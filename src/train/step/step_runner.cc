#include "train/step/step_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "base/error.h"
#include "measure/statistics.h"

namespace paceline::train {
namespace {

constexpr std::size_t kShort = 65536 / sizeof(float);

/// Seconds of one reduction: the median of several, each timed on the rank that arrived last.
double seconds_of_reduction(comm::Communicator& communicator, base::Array values, int tries) {
  std::vector<double> durations;
  for (int i = 0; i < tries; ++i) {
    communicator.barrier();
    const auto begin = base::Clock::now();
    const auto pending = communicator.all_reduce(values);
    pending->wait();
    double seconds = base::seconds(pending->timing().done - begin);
    communicator.all_reduce(std::span(&seconds, 1), comm::Reduce::min);
    if (i > 0) durations.push_back(seconds);  // the first one touches memory and is not counted
  }
  return measure::estimate(durations).median;
}

}  // namespace

BucketChoice best_bucket(double gradient_bytes, double latency_s, double bytes_per_s) {
  const double best = std::sqrt(gradient_bytes * latency_s * bytes_per_s);
  const double bytes = std::clamp(best, gradient_bytes / 100, gradient_bytes);
  // Two digits: more would suggest a precision that the estimate does not have. The printed size, read back,
  // is the same size.
  const double unit = std::pow(10, std::floor(std::log10(bytes)) - 1);
  const double megabytes = std::max(1.0, std::round(bytes / unit)) * unit / 1e6;
  return {.megabytes = megabytes,
          .why = fmt::format(
              "--bucket auto: {:.3g} MB per bucket, from the measured latency of {:.1f} us and bandwidth of "
              "{:.2f} GB/s of a reduction here and a gradient of {:.1f} MB",
              megabytes, 1e6 * latency_s, bytes_per_s / 1e9, gradient_bytes / 1e6)};
}

BucketChoice choose_bucket(comm::Communicator& communicator, base::Array gradients) {
  gradients.memory->fill(gradients, 0);
  const auto part = gradients.subarray(0, std::min(kShort, gradients.size));
  // The longest array first, so that buffers which grow with the length get their final size at once.
  const double all = seconds_of_reduction(communicator, gradients, 5);
  const double few = seconds_of_reduction(communicator, part, 21);
  const auto more = static_cast<double>(gradients.bytes() - part.bytes());
  if (more <= 0 || all <= few)  // a gradient this short has one bucket
    return best_bucket(static_cast<double>(gradients.bytes()), few, 1e18);
  const double bytes_per_s = more / (all - few);
  const double latency = std::max(few - static_cast<double>(part.bytes()) / bytes_per_s, 1e-7);
  return best_bucket(static_cast<double>(gradients.bytes()), latency, bytes_per_s);
}

double bucket_mb(const Job& job, comm::Communicator& communicator, engine::Engine& engine,
                 std::vector<std::string>& notes) {
  if (!job.options.bucket_auto || communicator.size() == 1 || is_data_parallel(job.options))
    return job.options.bucket_mb;
  auto* const queue = queue_of(job, engine);
  const auto choice =
      choose_bucket(communicator, queue != nullptr ? queue->gradients_and_votes() : engine.gradients());
  notes.push_back(choice.why);
  return choice.megabytes;
}

double allreduce_peak(comm::Communicator& communicator, const Buckets& buckets, base::Array gradients) {
  constexpr int kTries = 6;  // the first one touches memory and is not counted
  gradients.memory->fill(gradients, 0);
  std::vector<double> durations;
  for (int i = 0; i < kTries; ++i) {
    communicator.barrier();
    std::vector<std::unique_ptr<comm::Pending>> pending;
    const auto begin = base::Clock::now();
    for (std::size_t bucket = 0; bucket < buckets.count(); ++bucket)
      pending.push_back(
          communicator.all_reduce(gradients.subarray(static_cast<std::size_t>(buckets.begin(bucket)),
                                                     static_cast<std::size_t>(buckets.bytes(bucket) / 4))));
    for (const auto& one : pending) one->wait();
    double seconds = base::seconds(pending.back()->timing().done - begin);
    communicator.all_reduce(std::span(&seconds, 1),
                            comm::Reduce::min);  // the last rank to arrive did not wait
    if (i > 0) durations.push_back(seconds);
  }
  const double ranks = communicator.size();
  const double algbw = static_cast<double>(gradients.bytes()) / measure::estimate(durations).median;
  return algbw * 2 * (ranks - 1) / ranks / 1e9;
}

using measure::Phase;

StepRunner::StepRunner(const Job& job, engine::Engine& engine, comm::Communicator& communicator,
                       measure::Ledger& ledger, CollectiveLog& log, LossGuard& guard,
                       std::vector<std::string>& notes)
    : job_(job), engine_(engine), communicator_(communicator), ledger_(ledger), guard_(guard) {
  communicator.at(0, "the trial of collectives");
  const double megabytes = bucket_mb(job, communicator, engine, notes);
  if (auto* queue = queue_of(job, engine))
    queued_.emplace(job, engine, *queue, communicator, ledger, log, megabytes);
  else if (is_data_parallel(job.options))
    data_parallel_.emplace(job, engine, communicator, ledger, log, guard);
  else
    stepper_.emplace(job, engine, communicator, ledger, log, guard, megabytes);
}

std::size_t StepRunner::collectives() const {
  if (data_parallel_) return kDataParallelCollectives;
  return queued_ ? queued_->buckets().count() : stepper_->buckets().count();
}

void StepRunner::fill_in_bytes(WorkerResult& result) const {
  constexpr std::int64_t kFloat = sizeof(float);
  result.gradient_bytes = kFloat * engine_.layout().elements;
  result.vote_bytes = queued_ ? kFloat * static_cast<std::int64_t>(kVoteFloats) : 0;
}

double StepRunner::allreduce_peak() const {
  if (data_parallel_) return 0;
  return queued_ ? train::allreduce_peak(communicator_, queued_->buckets(), queued_->array())
                 : train::allreduce_peak(communicator_, stepper_->buckets(), engine_.gradients());
}

void StepRunner::begin_window(std::vector<measure::BucketRecord>& records, std::size_t steps,
                              bool keeps_ready) {
  if (queued_) queued_->begin_window(records, steps, keeps_ready);
  if (stepper_) stepper_->begin_window(records, steps, keeps_ready);
}

const data::Batch& StepRunner::next_batch(data::Loader* loader, const Counters& done, StepOrder& order) {
  order.begin = base::Clock::now();
  if (!queued_) ledger_.enter(Phase::data_wait);
  communicator_.at(order.update + 1, "waiting for data");
  const data::Batch* own = loader != nullptr ? &loader->next() : nullptr;
  order.has_batch = base::Clock::now();
  if (!queued_) ledger_.enter(Phase::other);
  return data_parallel_ ? data_parallel_->scatter(own, done) : *own;
}

void StepRunner::post(const data::Batch& batch, const StepOrder& order) {
  if (queued_) return queued_->post(batch, order);
  base::expects(!waited_, "a step is taken before another is posted");
  waited_ =
      TakenStep{.order = order,
                .epoch = batch.epoch,
                .result = data_parallel_ ? data_parallel_->run(batch, order.update, order.lr, order.enough)
                                         : stepper_->run(batch, order.update, order.lr, order.enough),
                .begin = order.begin};
}

TakenStep StepRunner::take() {
  TakenStep step = drop();
  if (queued_) step.result.verdict = guard_.see(step.result.all);
  return step;
}

TakenStep StepRunner::drop() {
  if (!queued_) {
    base::expects(waited_.has_value(), "a step is taken that was posted");
    return *std::exchange(waited_, std::nullopt);
  }
  const DoneStep done = queued_->take();
  return {.order = done.order,
          .epoch = done.epoch,
          .result = {.local = done.local, .all = done.all},
          .begin = done.begin,
          .end = done.end,
          .blocked_s = done.blocked_s};
}

std::optional<GuardState> StepRunner::guard_when_empty() {
  if (!queued_ || queued_->is_empty()) return guard_.state();
  LossGuard guard = guard_;
  for (const DoneStep& step : queued_->read_all())
    if (guard.see(step.all) == Verdict::diverged) return std::nullopt;
  return guard.state();
}

}  // namespace paceline::train

#include "train/step/step_runner.h"

#include <utility>

#include "base/error.h"
#include "train/step/allreduce_peak.h"
#include "train/step/bucket_size.h"

namespace paceline::train {

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

#include "train/record/run_events.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "data/loader.h"
#include "measure/noise_scale.h"

namespace paceline::train {

BatchNames batch_of(const Job& job, std::int64_t update) {
  const std::int64_t steps = job.resolved.steps_per_epoch, size = job.resolved.global_batch;
  const std::int64_t epoch = update / steps, step = update % steps;
  BatchNames batch{.epoch = epoch + 1, .step = step + 1};
  batch.samples.reserve(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i) batch.samples.push_back(job.sampler.index(epoch, step * size + i));
  return batch;
}

std::string sentence(const BatchNames& batch) {
  constexpr std::size_t kShown = 8;
  const auto shown = std::span(batch.samples).first(std::min(kShown, batch.samples.size()));
  return fmt::format("the batch of step {} of epoch {} (training samples {}{})", batch.step, batch.epoch,
                     fmt::join(shown, ", "), batch.samples.size() > kShown ? ", ..." : "");
}

using measure::Event;

void RunEvents::step(const Step& step) {
  if (!is_root_) return;
  const auto samples = static_cast<double>(job_.resolved.global_batch);
  if (job_.progress.step)
    job_.progress.step(step.update, job_.resolved.end, step.loss, samples / step.seconds);
  if (!job_.progress.event) return;
  constexpr double kSecondsBetween = 1;
  ++steps_;
  seconds_ += step.seconds;
  const auto now = base::Clock::now();
  if (last_ != base::TimePoint{} && base::seconds(now - last_) < kSecondsBetween) return;
  last_ = now;
  job_.progress.event(Event("step")
                          .set("update", step.update)
                          .set("updates", job_.resolved.end)
                          .set("epoch", step.epoch)
                          .set("loss", step.loss)
                          .set("lr", step.lr)
                          .set("images_per_s", static_cast<double>(steps_) * samples / seconds_)
                          .set("step_s", seconds_ / static_cast<double>(steps_)));
  steps_ = 0;
  seconds_ = 0;
}

void RunEvents::epoch(const measure::EpochRecord& epoch, bool is_first) {
  if (!is_root_) return;
  if (job_.progress.epoch) job_.progress.epoch(epoch);
  if (job_.progress.say && is_first && job_.resume && job_.resume->standing.counters.step > 0)
    job_.progress.say(fmt::format(
        "epoch {}: training loss, accuracy and seconds are of {} of its {} steps, those since the resume",
        epoch.epoch, epoch.steps.value(), job_.resolved.steps_per_epoch));
  if (!is_told()) return;
  std::optional<double> images_per_s, noise_scale;
  if (epoch.gradient_squares)
    if (const auto found = measure::noise_scale(*epoch.gradient_squares)) noise_scale = found->batch;
  if (epoch.steps && epoch.seconds > 0)
    images_per_s = static_cast<double>(*epoch.steps * job_.resolved.global_batch) / epoch.seconds;
  job_.progress.event(Event("epoch")
                          .set("epoch", epoch.epoch)
                          .set("update", epoch.updates)
                          .set("updates", job_.resolved.end)
                          .set("seconds", epoch.seconds)
                          .set("lr", epoch.lr)
                          .set("train_loss", epoch.train_loss)
                          .set("train_accuracy", epoch.train_accuracy)
                          .set("images_per_s", images_per_s)
                          .set("noise_scale", noise_scale));
  if (!epoch.test_loss && !epoch.validation_loss) return;
  job_.progress.event(Event("evaluation")
                          .set("epoch", epoch.epoch)
                          .set("update", epoch.updates)
                          .set("test_loss", epoch.test_loss)
                          .set("test_accuracy", epoch.test_accuracy)
                          .set("test_top_5", epoch.test_top_5)
                          .set("validation_loss", epoch.validation_loss)
                          .set("validation_accuracy", epoch.validation_accuracy)
                          .set("validation_top_5", epoch.validation_top_5));
}

void RunEvents::tested(const measure::TestSetRecord& result, std::int64_t updates) {
  if (!is_told()) return;
  job_.progress.event(Event("evaluation")
                          .set("epoch", result.epoch)
                          .set("update", updates)
                          .set("test_loss", result.loss)
                          .set("test_accuracy", result.accuracy)
                          .set("test_top_5", result.top_5));
}

namespace {

Event event_of(const char* name, std::int64_t updates, const std::string& what, const BatchNames& batch) {
  return Event(name)
      .set("update", updates)
      .set("epoch", batch.epoch)
      .set("step", batch.step)
      .set("reason", what)
      .set("samples", fmt::format("{}", fmt::join(batch.samples, " ")));
}

}  // namespace

void RunEvents::skipped(std::int64_t updates, const std::string& what, const BatchNames& batch,
                        const GuardState& state) {
  if (!is_root_) return;
  constexpr std::int64_t kMostSaid = 20;  // the rest is only in the event log
  if (job_.progress.say && state.skipped <= kMostSaid)
    job_.progress.say(fmt::format("step {}: {} in {}; its update is skipped (number {} of this training)",
                                  updates, what, sentence(batch), state.skipped));
  if (is_told())
    job_.progress.event(event_of("skip", updates, what, batch).set("skipped_updates", state.skipped));
}

void RunEvents::diverged(std::int64_t updates, const std::string& what, const BatchNames& batch) {
  if (is_told()) job_.progress.event(event_of("divergence", updates, what, batch));
}

void RunEvents::rolled_back(const measure::RollbackRecord& rollback, const TrainingState& at) {
  if (!is_root_) return;
  if (job_.progress.say)
    job_.progress.say(fmt::format(
        "step {}: {}; the training goes back to its checkpoint of update {} and goes on with {:g} times the learning "
        "rate of its schedule (rollback {} of at most {})",
        rollback.update, rollback.reason, rollback.to_update, rollback.rate_factor, at.guard.rollbacks,
        LossGuard::kMostRollbacks));
  if (is_told())
    job_.progress.event(Event("rollback")
                            .set("update", rollback.update)
                            .set("to_update", rollback.to_update)
                            .set("epoch", at.counters.epoch + 1)
                            .set("rate_factor", rollback.rate_factor)
                            .set("rollbacks", at.guard.rollbacks)
                            .set("reason", rollback.reason));
}

Event start_event(const measure::Record& record, const Resolved& resolved) {
  return measure::start_of("train", record.command)
      .set("model", record.model.name)
      .set("data", record.data.spec)
      .set("device", record.device)
      .set("precision", record.precision)
      .set("workers", record.workers)
      .set("threads", record.threads_per_worker)
      .set("local_batch", record.local_batch)
      .set("global_batch", record.global_batch)
      .set("updates", resolved.end)
      .set("steps_per_epoch", resolved.steps_per_epoch);
}

Event resume_event(const ResumePoint& resume) {
  return Event("resume")
      .set("checkpoint", resume.path.filename().string())
      .set("update", resume.standing.counters.update)
      .set("epoch", resume.standing.counters.epoch + 1);
}

Event checkpoint_event(std::int64_t updates, const std::string& file, bool is_best) {
  return Event("checkpoint").set("update", updates).set("file", file).set("is_best", is_best);
}

Event end_event(const measure::Record& record, double seconds) {
  Event event("end");
  event.set("status", record.status).set("seconds", seconds);
  if (!record.reason.empty()) event.set("reason", record.reason);
  if (!record.epochs.empty()) event.set("update", record.epochs.back().updates);
  if (record.window.wall_s > 0)
    event.set("images_per_s", static_cast<double>(record.window.samples) / record.window.wall_s);
  if (record.chosen)
    event.set("best_epoch", record.chosen->epoch)
        .set("validation_accuracy", record.chosen->validation_accuracy);
  return event.set("test_accuracy", measure::final_test_accuracy(record));
}

}  // namespace paceline::train

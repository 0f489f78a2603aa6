#include "train/checkpoint/recovery.h"

#include <fmt/format.h>

#include <cmath>
#include <span>

#include "train/record/batch_names.h"
#include "train/step/not_finite.h"

namespace paceline::train {

Recovery::Recovery(const Job& job, comm::Communicator& communicator, RunEvents& events)
    : job_(job),
      communicator_(communicator),
      events_(events),
      guard_(job.options.on_nan, job.graph.classes(), job.resolved.global_batch,
             job.options.window_steps == 0) {}

std::string Recovery::describe(const StepResult& outcome) const {
  if (outcome.all.not_finite) return loss_not_finite(outcome.local.loss, communicator_.rank());
  return guard_.what();
}

void Recovery::diverged(const Where& where, const std::string& what, CheckpointWriter& writer) {
  const bool is_root = communicator_.rank() == 0;
  const Divergence divergence{
      .step = where.update,
      .updates = job_.resolved.length.updates,
      .lr = where.lr,
      .last_checkpoint = is_root ? writer.good_before_anywhere(where.first_bad).string() : "",
      .can_go_back = job_.options.on_nan == OnNan::stop && job_.options.window_steps == 0};
  const auto sentence = not_finite_sentence(divergence, what);
  if (job_.options.on_nan != OnNan::rollback) throw base::AgreedError(base::ErrorKind::data, sentence);
  throw Setback(sentence, what, where.update, where.first_bad);
}

bool Recovery::is_updated(const StepResult& outcome, std::int64_t update, double lr,
                          CheckpointWriter& writer) {
  if (outcome.is_updated()) return true;
  const auto batch = batch_of(job_, update - guard_.bad_before());
  const auto what = describe(outcome);
  if (outcome.verdict == Verdict::skipped) {
    events_.skipped(update + 1, what, batch_of(job_, update), guard_.state());
    return false;
  }
  events_.diverged(update + 1, what, batch);
  const auto steps = guard_.bad_before() + 1;
  diverged({.update = update + 1, .first_bad = update - guard_.bad_before(), .lr = lr},
           steps == 1 ? fmt::format("{} in {}", what, sentence(batch))
                      : fmt::format("{}, and has been bad for {} steps, the first with {}", what, steps,
                                    sentence(batch)),
           writer);
}

void Recovery::require_finite_weights(const measure::EpochRecord& epoch, engine::Engine& engine,
                                      CheckpointWriter& writer, measure::Ledger& ledger) {
  const measure::InPhase checking(ledger, measure::Phase::checkpoint);
  engine.fetch();
  if (!is_finite_everywhere(engine.weights(), communicator_))
    diverged({.update = epoch.updates, .first_bad = epoch.updates, .lr = epoch.lr},
             fmt::format("the weights are no longer finite, after {}",
                         sentence(batch_of(job_, epoch.updates - 1))),
             writer);
}

void Recovery::require_finite_losses(const measure::EpochRecord& epoch, CheckpointWriter& writer) {
  for (const auto& [part, loss] :
       {std::pair{"test", epoch.test_loss}, std::pair{"validation", epoch.validation_loss}})
    if (loss && !std::isfinite(*loss)) {
      writer.discard();
      diverged({.update = epoch.updates, .first_bad = epoch.updates, .lr = epoch.lr},
               part_not_finite(part, *loss), writer);
    }
}

void Recovery::all_were_skipped(std::int64_t updates, double lr, CheckpointWriter& writer) {
  diverged({.update = updates, .first_bad = updates, .lr = lr},
           "every update since the last epoch or checkpoint was skipped, so there is no loss to report",
           writer);
}

Standing Recovery::roll_back(const Setback& setback, engine::Engine& engine, Lookahead& lookahead,
                             BestWeights& best, CheckpointWriter& writer) {
  const auto rollbacks = guard_.state().rollbacks + 1;
  if (rollbacks > LossGuard::kMostRollbacks)
    throw base::AgreedError(
        base::ErrorKind::data,
        fmt::format("{}; the training went back {} times already, and each time lowered the learning rate",
                    setback.what(), LossGuard::kMostRollbacks));
  auto at = restore_good(job_, communicator_, engine, lookahead, best, writer, setback.first_bad);
  if (!at) throw base::AgreedError(base::ErrorKind::data, setback.what());
  at->guard.rollbacks = rollbacks;
  at->guard.above = at->guard.skipped_in_row = 0;
  guard_.resume(at->guard);
  rollbacks_.push_back({.update = setback.update,
                        .reason = setback.what_happened,
                        .to_update = at->counters.update,
                        .rate_factor = guard_.rate_factor()});
  events_.rolled_back(rollbacks_.back(), *at);
  return *at;
}

void Recovery::tell(WorkerResult& result) const {
  result.rollbacks = rollbacks_;
  result.all_rollbacks = guard_.state().rollbacks;
  result.skipped_updates = guard_.state().skipped;
}

}  // namespace paceline::train

#include "train/checkpoint/restore.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <type_traits>

#include "data/augment.h"
#include "graph/initialise.h"
#include "train/checkpoint/given_weights.h"
#include "train/evaluate.h"
#include "train/given/options.h"

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

void Recovery::diverged(const Where& where, const std::string& what, CheckpointSchedule& schedule) {
  const bool is_root = communicator_.rank() == 0;
  const Divergence divergence{
      .step = where.update,
      .updates = job_.resolved.length.updates,
      .lr = where.lr,
      .last_checkpoint = is_root ? schedule.good_before_anywhere(where.first_bad).string() : "",
      .can_go_back = job_.options.on_nan == OnNan::stop && job_.options.window_steps == 0};
  const auto sentence = not_finite_sentence(divergence, what);
  if (job_.options.on_nan != OnNan::rollback) throw base::AgreedError(base::ErrorKind::data, sentence);
  throw Setback(sentence, what, where.update, where.first_bad);
}

bool Recovery::is_updated(const StepResult& outcome, std::int64_t update, double lr,
                          CheckpointSchedule& schedule) {
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
           schedule);
}

void Recovery::require_finite_weights(const measure::EpochRecord& epoch, engine::Engine& engine,
                                      CheckpointSchedule& schedule, measure::Ledger& ledger) {
  const measure::InPhase checking(ledger, measure::Phase::checkpoint);
  engine.fetch();
  if (!is_finite_everywhere(engine.weights(), communicator_))
    diverged({.update = epoch.updates, .first_bad = epoch.updates, .lr = epoch.lr},
             fmt::format("the weights are no longer finite, after {}",
                         sentence(batch_of(job_, epoch.updates - 1))),
             schedule);
}

void Recovery::require_finite_losses(const measure::EpochRecord& epoch, CheckpointSchedule& schedule) {
  for (const auto& [part, loss] :
       {std::pair{"test", epoch.test_loss}, std::pair{"validation", epoch.validation_loss}})
    if (loss && !std::isfinite(*loss)) {
      schedule.discard();
      diverged({.update = epoch.updates, .first_bad = epoch.updates, .lr = epoch.lr},
               part_not_finite(part, *loss), schedule);
    }
}

void Recovery::all_were_skipped(std::int64_t updates, double lr, CheckpointSchedule& schedule) {
  diverged({.update = updates, .first_bad = updates, .lr = lr},
           "every update since the last epoch or checkpoint was skipped, so there is no loss to report",
           schedule);
}

TrainingState Recovery::roll_back(const Setback& setback, engine::Engine& engine, SlowWeights& slow,
                                  BestWeights& best, CheckpointSchedule& schedule) {
  const auto rollbacks = guard_.state().rollbacks + 1;
  if (rollbacks > LossGuard::kMostRollbacks)
    throw base::AgreedError(
        base::ErrorKind::data,
        fmt::format("{}; the training went back {} times already, and each time lowered the learning rate",
                    setback.what(), LossGuard::kMostRollbacks));
  auto at = restore_good(job_, communicator_, engine, slow, best, schedule, setback.first_bad);
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

void Recovery::tell(WorkerResult& result, engine::Engine& engine) const {
  engine.fetch();
  result.loss_scale = engine.loss_scale();
  result.rollbacks = rollbacks_;
  result.all_rollbacks = guard_.state().rollbacks;
  result.skipped_updates = guard_.state().skipped;
}

void BestWeights::keep() {
  if (communicator_.rank() != 0) return;
  const auto weights = engine_.weights();
  weights_.assign(weights.begin(), weights.end());
  if (!slow_.has_average()) return;
  slow_.fetch();
  average_.assign(slow_.values().begin(), slow_.values().end());
}

void BestWeights::read(const std::filesystem::path& file) {
  weights_.resize(engine_.weights().size());
  read_weights(file, engine_.graph(), engine_.layout(), weights_);
  if (!slow_.has_average()) return;
  average_.resize(weights_.size());
  read_weights(file, engine_.graph(), engine_.layout(), average_, true);
}

void BestWeights::put_back() {
  engine_.fetch();  // a device's engine accepts weights only after its own were fetched
  const auto weights = engine_.weights();
  if (communicator_.rank() == 0) std::copy(weights_.begin(), weights_.end(), weights.begin());
  communicator_.broadcast(std::as_writable_bytes(weights), 0);
  engine_.weights_changed();
  if (!slow_.has_average()) return;
  if (communicator_.rank() == 0) std::ranges::copy(average_, slow_.values().begin());
  communicator_.broadcast(std::as_writable_bytes(slow_.values()), 0);
  slow_.changed();
}

namespace {

/// Images [count][H][W][C] as evaluation would prepare them.
std::vector<float> images_to_whiten_by(const data::Source& source) {
  const data::Dataset& set = *source.train;
  const data::Augment augment(set.format(), {.mean = source.mean, .stddev = source.stddev});
  const std::int64_t count = std::min(set.size(), graph::kWhiteningImages);
  const auto values = static_cast<std::size_t>(set.format().bytes());
  std::vector<std::uint8_t> pixels(values);
  std::vector<float> images(static_cast<std::size_t>(count) * values);
  for (std::int64_t i = 0; i < count; ++i) {
    set.read(i * set.size() / count, pixels);
    augment.evaluate(pixels, std::span(images).subspan(static_cast<std::size_t>(i) * values, values));
  }
  return images;
}

static_assert(std::is_trivially_copyable_v<Restored>);

/// On rank 0: whether the previous run did not finish evaluating its last epoch.
bool lacks_evaluation(const Job& job, const Restored& at) {
  const auto& counters = at.standing.counters;
  if (counters.update == 0 || !is_evaluated(job, counters)) return false;
  const bool has_validation = job.source.validation != nullptr;
  if (counters.step != 0 && counters.update != job.resolved.end) {  // inside an epoch: --evaluate-steps
    if (!job.evaluations.has(counters.update)) return true;
    // It reached the target, with which the epoch ended, and the run was lost before its record said so.
    return at.is_at_target && job.last_epoch && !job.last_epoch->test_loss &&
           !job.last_epoch->validation_loss;
  }
  if (keeps_evaluations(job.options) && !job.evaluations.has(counters.update)) return true;
  if (validates(job.options, has_validation))
    return at.standing.validation.last_epoch < epoch_number(at.standing.counters);
  return test_policy(job.options, has_validation) == TestSet::every && job.last_epoch &&
         !job.last_epoch->test_loss;
}

/// Rank 0.
void read(const ResumePoint& point, const Job& job, engine::Engine& engine, SlowWeights& slow,
          BestWeights& best) {
  read_checkpoint(point.path, engine, slow.values(), job.options);
  if (const auto update = point.standing.validation.best_update; update > 0)
    best.read(best_checkpoint_path(point.path.parent_path(), update));
}

/// Sends what rank 0 has read to all ranks.
void share_arrays(const Job& job, comm::Communicator& communicator, engine::Engine& engine,
                  SlowWeights& slow) {
  communicator.broadcast(std::as_writable_bytes(engine.weights()), 0);
  for (int slot = 0; slot < engine::state_slots(job.options.rule); ++slot)
    communicator.broadcast(std::as_writable_bytes(engine.optimizer_state(slot)), 0);
  if (!slow.values().empty()) communicator.broadcast(std::as_writable_bytes(slow.values()), 0);
  auto scale = engine.loss_scale().value_or(engine::LossScale{});
  communicator.broadcast(std::as_writable_bytes(std::span(&scale, 1)), 0);
  engine.set_loss_scale(scale);
  engine.weights_changed();
  slow.changed();
}

}  // namespace

void first_weights(const Job& job, comm::Communicator& communicator, engine::Engine& engine) {
  graph::initialise(job.graph, engine.layout(), job.options.seed, engine.weights());
  const bool is_given = !job.options.weights.empty();
  if (is_given || graph::wants_whitening(job.graph)) {
    // Computed once and broadcast: sums of doubles may differ between different processors, and a file may be
    // on one host alone.
    if (communicator.rank() == 0) {
      if (is_given)
        read_given_weights({job.options.weights, job.options.weights_by_order}, job.graph, engine.layout(),
                           engine.weights());
      else
        graph::whiten(job.graph, engine.layout(), images_to_whiten_by(job.source), engine.weights());
    }
    communicator.broadcast(std::as_writable_bytes(engine.weights()), 0);
  }
  engine.weights_changed();
}

Restored restore(const Job& job, comm::Communicator& communicator, engine::Engine& engine, SlowWeights& slow,
                 BestWeights& best, CheckpointSchedule& schedule, std::vector<std::string>& notes) {
  const bool is_resumed = !job.options.resume.empty();
  communicator.at(0, is_resumed ? "the reading of the checkpoint" : "the first weights");
  if (!is_resumed) {
    first_weights(job, communicator, engine);
    slow.begin(engine);
    return {};
  }
  slow.begin(engine);  // allocates its memory
  Restored at;
  if (communicator.rank() == 0) {
    read(*job.resume, job, engine, slow, best);
    at.standing = job.resume->standing;
    notes.push_back(fmt::format("resumed from {} at update {}", job.resume->path.filename().string(),
                                at.standing.counters.update));
    schedule.resumed_from(*job.resume);
    at.is_at_target = job.evaluations.first_at_target(job.options).has_value();
    at.evaluates_first = lacks_evaluation(job, at);
  }
  communicator.broadcast(std::as_writable_bytes(std::span(&at, 1)), 0);
  share_arrays(job, communicator, engine, slow);
  return at;
}

std::optional<TrainingState> restore_good(const Job& job, comm::Communicator& communicator,
                                          engine::Engine& engine, SlowWeights& slow, BestWeights& best,
                                          CheckpointSchedule& schedule, std::int64_t before) {
  struct Found {
    TrainingState standing;
    bool is_there = false;
  } found;
  engine.fetch();  // a device's engine accepts weights only after its own were fetched
  if (communicator.rank() == 0) {
    for (auto path = schedule.good_before(before); !path.empty() && !found.is_there;
         path = schedule.good_before(before)) {
      try {
        const auto point = resume_point_of(path);
        read(point, job, engine, slow, best);
        found = {.standing = point.standing, .is_there = true};
      } catch (const base::Error&) {  // damaged meanwhile: take the one before it
        before = *update_of(path);
      }
    }
  }
  communicator.broadcast(std::as_writable_bytes(std::span(&found, 1)), 0);
  if (!found.is_there) return std::nullopt;
  schedule.go_back(found.standing);
  share_arrays(job, communicator, engine, slow);
  return found.standing;
}

}  // namespace paceline::train

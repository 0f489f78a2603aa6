#include "train/checkpoint/restore.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "data/augment.h"
#include "graph/initialise.h"
#include "train/checkpoint/given_weights.h"
#include "train/evaluate.h"
#include "train/given/options.h"

namespace paceline::train {

namespace {

/// The sign of NaN has no meaning, but "-nan" would look as if it had.
double without_sign(double value) {
  return std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
}

/// Whether every value is finite on every rank. Collective; the same answer on every rank.
bool is_finite_everywhere(std::span<const float> values, comm::Communicator& communicator) {
  double broken = std::ranges::all_of(values, [](float value) { return std::isfinite(value); }) ? 0 : 1;
  communicator.all_reduce(std::span(&broken, 1), comm::Reduce::max);
  return broken == 0;
}

}  // namespace

Recovery::Recovery(const TrainingParts& parts, RunEvents& events)
    : parts_(parts),
      events_(events),
      guard_(parts.job.options.on_nan, parts.job.graph.classes(), parts.job.resolved.global_batch,
             parts.job.options.window_steps == 0) {}

std::string Recovery::describe(const StepResult& outcome) const {
  if (!outcome.all.not_finite) return guard_.what();
  const double loss = outcome.local.loss;
  const int rank = parts_.communicator.rank();
  return std::isfinite(loss)
             ? fmt::format("the loss is no longer finite (on another rank than {})", rank)
             : fmt::format("the loss is no longer finite ({} on rank {})", without_sign(loss), rank);
}

void Recovery::diverged(std::int64_t update, std::int64_t first_bad, double lr, const std::string& what) {
  const Options& options = parts_.job.options;
  const bool is_root = parts_.communicator.rank() == 0;
  const auto last = is_root ? parts_.schedule.written().good_before_anywhere(first_bad).string() : "";
  const auto sentence = fmt::format(
      "step {} of {}: {} at learning rate {:g}; {}; try a lower --lr, --warmup{} or another --precision",
      update, parts_.job.resolved.length.updates, what, lr,
      last.empty() ? "there is no earlier checkpoint to go back to" : "the last good checkpoint is " + last,
      options.on_nan == OnNan::stop && options.window_steps == 0 ? ", --on-nan rollback" : "");
  if (options.on_nan != OnNan::rollback) throw base::AgreedError(base::ErrorKind::data, sentence);
  throw Setback(sentence, what, update, first_bad);
}

bool Recovery::is_updated(const StepResult& outcome, std::int64_t update, double lr) {
  if (outcome.is_updated()) return true;
  const auto first_bad = update - guard_.bad_before();
  const auto batch = batch_of(parts_.job, first_bad);
  const auto what = describe(outcome);
  if (outcome.verdict == Verdict::skipped) {
    events_.skipped(update + 1, what, batch_of(parts_.job, update), guard_.state());
    return false;
  }
  events_.diverged(update + 1, what, batch);
  const auto steps = guard_.bad_before() + 1;
  diverged(update + 1, first_bad, lr,
           steps == 1 ? fmt::format("{} in {}", what, sentence(batch))
                      : fmt::format("{}, and has been bad for {} steps, the first with {}", what, steps,
                                    sentence(batch)));
}

void Recovery::require_finite_weights(const measure::EpochRecord& epoch, measure::Ledger& ledger) {
  const measure::InPhase checking(ledger, measure::Phase::checkpoint);
  parts_.engine.fetch();
  if (!is_finite_everywhere(parts_.engine.weights(), parts_.communicator))
    diverged(epoch.updates, epoch.updates, epoch.lr,
             fmt::format("the weights are no longer finite, after {}",
                         sentence(batch_of(parts_.job, epoch.updates - 1))));
}

void Recovery::require_finite_losses(const measure::EpochRecord& epoch) {
  for (const auto& [part, loss] :
       {std::pair{"test", epoch.test_loss}, std::pair{"validation", epoch.validation_loss}})
    if (loss && !std::isfinite(*loss)) {
      parts_.schedule.discard();
      diverged(epoch.updates, epoch.updates, epoch.lr,
               fmt::format("the {} loss is no longer finite ({})", part, without_sign(*loss)));
    }
}

void Recovery::all_were_skipped(std::int64_t updates, double lr) {
  diverged(updates, updates, lr,
           "every update since the last epoch or checkpoint was skipped, so there is no loss to report");
}

void Recovery::tell(WorkerResult& result) const {
  parts_.engine.fetch();
  result.loss_scale = parts_.engine.loss_scale();
  result.rollbacks = rollbacks_;
  result.all_rollbacks = guard_.state().rollbacks;
  result.skipped_updates = guard_.state().skipped;
}

void BestWeights::keep() {
  if (communicator_.rank() != 0) return;
  engine_.fetch();
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
void read(const ResumePoint& point, const TrainingParts& parts) {
  read_checkpoint(point.path, parts.engine, parts.slow.values(), parts.job.options);
  if (const auto update = point.standing.validation.best_update; update > 0)
    parts.best.read(best_checkpoint_path(point.path.parent_path(), update));
}

/// Sends what rank 0 has read to all ranks.
void share_arrays(const TrainingParts& parts) {
  const auto& [job, communicator, engine, slow, best, schedule] = parts;
  communicator.broadcast(std::as_writable_bytes(engine.weights()), 0);
  for (int slot = 0; slot < engine::state_slots(job.options.rule); ++slot)
    communicator.broadcast(std::as_writable_bytes(engine.optimizer_state(slot)), 0);
  if (!slow.values().empty()) communicator.broadcast(std::as_writable_bytes(slow.values()), 0);
  engine.set_loss_scale(
      comm::value_of_first(communicator, engine.loss_scale().value_or(engine::LossScale{})));
  engine.weights_changed();
  slow.changed();
}

/// Fills the engine's weights as the model says (graph/initialise.h), or from the file of `--weights`
/// (given_weights.h), which rank 0 reads. Whitened layers use images spread evenly over the training set.
/// Collective: the same bytes on all ranks.
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

/// Restores the newest good and undamaged checkpoint of fewer than `before` updates, read by rank 0, and
/// removes later ones. Returns nothing, on every rank, if there is none. Collective.
std::optional<TrainingState> restore_good(const TrainingParts& parts, std::int64_t before) {
  std::optional<TrainingState> found;
  parts.engine.fetch();  // a device's engine accepts weights only after its own were fetched
  if (parts.communicator.rank() == 0) {
    const auto& files = parts.schedule.written();
    for (auto path = files.good_before(before); !path.empty() && !found; path = files.good_before(before)) {
      try {
        const auto point = resume_point_of(path);
        read(point, parts);
        found = point.standing;
      } catch (const base::Error&) {  // damaged meanwhile: take the one before it
        before = *update_of(path);
      }
    }
  }
  found = comm::value_of_first(parts.communicator, found);
  if (!found) return std::nullopt;
  parts.schedule.go_back(*found);
  share_arrays(parts);
  return found;
}

}  // namespace

TrainingState Recovery::roll_back(const Setback& setback) {
  const auto rollbacks = guard_.state().rollbacks + 1;
  if (rollbacks > LossGuard::kMostRollbacks)
    throw base::AgreedError(
        base::ErrorKind::data,
        fmt::format("{}; the training went back {} times already, and each time lowered the learning rate",
                    setback.what(), LossGuard::kMostRollbacks));
  auto at = restore_good(parts_, setback.first_bad);
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

Restored restore(const TrainingParts& parts, std::vector<std::string>& notes) {
  const auto& [job, communicator, engine, slow, best, schedule] = parts;
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
    read(*job.resume, parts);
    at.standing = job.resume->standing;
    notes.push_back(fmt::format("resumed from {} at update {}", job.resume->path.filename().string(),
                                at.standing.counters.update));
    schedule.written().resumed_from(*job.resume);
    at.is_at_target = job.evaluations.first_at_target(job.options).has_value();
    at.evaluates_first = lacks_evaluation(job, at);
  }
  at = comm::value_of_first(communicator, at);
  share_arrays(parts);
  return at;
}

}  // namespace paceline::train

#include "train/record/evaluations.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace paceline::train {

using measure::EpochRecord;
using measure::EvaluatedUpdateRecord;

EvaluationLog::EvaluationLog(std::vector<EvaluatedUpdateRecord> earlier, std::span<const EpochRecord> epochs,
                             std::int64_t from)
    : from_(from), all_(std::move(earlier)) {
  std::erase_if(all_, [from](const EvaluatedUpdateRecord& one) { return one.update > from; });
  double seconds = 0;
  std::int64_t steps = 0;
  for (const EpochRecord& epoch : epochs) {
    if (epoch.updates > from) break;
    seconds += epoch.seconds;
    steps += epoch.steps.value_or(0);
  }
  if (steps == from) seconds_before_ = seconds;  // else the time of some of them is lost
}

void EvaluationLog::add(EvaluatedUpdateRecord evaluation, double seconds) {
  const std::lock_guard lock(mutex_);
  // An evaluation that an earlier run left out comes before this run has trained.
  if (seconds_before_) evaluation.seconds = *seconds_before_ + (evaluation.update == from_ ? 0 : seconds);
  std::erase_if(all_, [&](const EvaluatedUpdateRecord& one) { return one.update >= evaluation.update; });
  all_.push_back(evaluation);
}

void EvaluationLog::go_back(std::int64_t update) {
  const std::lock_guard lock(mutex_);
  std::erase_if(all_, [update](const EvaluatedUpdateRecord& one) { return one.update > update; });
  seconds_before_.reset();
}

std::vector<EvaluatedUpdateRecord> EvaluationLog::all() const {
  const std::lock_guard lock(mutex_);
  return all_;
}

bool EvaluationLog::has(std::int64_t update) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::find(all_, update, &EvaluatedUpdateRecord::update) != all_.end();
}

std::optional<EvaluatedUpdateRecord> EvaluationLog::first_at_target(const Options& options) const {
  if (!options.target) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(all_, [&](const EvaluatedUpdateRecord& one) {
    return options.target->is_reached(one.loss, one.accuracy);
  });
  return found == all_.end() ? std::nullopt : std::optional(*found);
}

void tell_evaluations(measure::Record& record, const Options& options, const EvaluationLog& log) {
  if (!keeps_evaluations(options)) return;
  record.evaluations = log.all();
  if (!options.target) return;
  record.target = {.quantity = std::string(options.target->quantity()), .value = options.target->value};
  if (const auto first = log.first_at_target(options)) {
    record.target->update = first->update;
    record.target->seconds = first->seconds;
  }
}

std::string sentence_on_target(const measure::Record& record) {
  if (!record.target) return "";
  const auto& target = *record.target;
  const auto text = fmt::format("the target {} {:g}", target.quantity, target.value);
  if (target.update)
    return fmt::format("{} was reached after {} updates ({} samples)", text, *target.update,
                       *target.update * record.global_batch);
  const auto& all = *record.evaluations;
  if (all.empty()) return text + " was not reached: nothing was evaluated";
  const bool is_loss = target.quantity == "loss";
  double best = is_loss ? all.front().loss : all.front().accuracy;
  for (const auto& one : all) best = is_loss ? std::min(best, one.loss) : std::max(best, one.accuracy);
  return fmt::format("{} was not reached: the best of {} was {:.4g}", text,
                     base::counted(std::ssize(all), "evaluation"), best);
}

void TargetWatch::see(const EpochRecord& epoch, std::span<const EpochRecord> epochs) {
  const auto& loss = epoch.validation_loss ? epoch.validation_loss : epoch.test_loss;
  const auto& accuracy = epoch.validation_accuracy ? epoch.validation_accuracy : epoch.test_accuracy;
  if (!loss || !accuracy || !keeps_evaluations(options_)) return;
  if (options_.target && options_.target->is_reached(*loss, *accuracy)) is_reached_ = true;
  if (!is_root_) return;
  double seconds = epoch.seconds;
  for (const EpochRecord& one : epochs)
    if (one.updates > log_.from()) seconds += one.seconds;  // not an earlier run's, which was evaluated here
  log_.add({.update = epoch.updates,
            .samples = epoch.updates * global_batch_,
            .loss = *loss,
            .accuracy = *accuracy},
           seconds);
}

void TargetWatch::go_back(std::int64_t update) {
  is_reached_ = false;  // a training at its target goes on from no checkpoint
  if (is_root_) log_.go_back(update);
}

}  // namespace paceline::train

#include "train/restore.h"

#include <span>
#include <type_traits>

#include "train/evaluate.h"
#include "train/first_weights.h"
#include "train/test_policy.h"

namespace paceline::train {
namespace {

static_assert(std::is_trivially_copyable_v<Restored>);

/// Rank 0: what the run before has left to do for its last epoch.
bool lacks_evaluation(const Job& job, const Restored& at) {
  if (at.counters.update == 0 || !is_evaluated(job, at.counters)) return false;
  const bool has_validation = job.source.validation != nullptr;
  if (validates(job.options, has_validation)) return at.validation.last_epoch < epoch_number(at.counters);
  return test_policy(job.options, has_validation) == TestSet::every && job.last_epoch &&
         !job.last_epoch->test_loss;
}

}  // namespace

Restored restore(const Job& job, comm::Communicator& communicator, engine::Engine& engine,
                 Lookahead& lookahead, BestWeights& best, CheckpointWriter& writer) {
  const bool is_resumed = !job.options.resume.empty();
  communicator.at(0, is_resumed ? "the reading of the checkpoint" : "the first weights");
  if (!is_resumed) {
    first_weights(job, communicator, engine);
    lookahead.begin(engine.weights());
    return {};
  }
  lookahead.begin(engine.weights());  // takes its memory
  Restored at;
  if (communicator.rank() == 0) {
    const auto& path = job.resume->path;
    read_checkpoint(path, engine, lookahead.slow(), job.options);
    at.counters = job.resume->counters;
    at.validation = job.resume->validation;
    if (at.validation.best_update > 0)
      best.read(best_checkpoint_path(path.parent_path(), at.validation.best_update));
    writer.resumed_from(*job.resume);
    at.evaluates_first = lacks_evaluation(job, at);
  }
  communicator.broadcast(std::as_writable_bytes(std::span(&at, 1)), 0);
  communicator.broadcast(std::as_writable_bytes(engine.weights()), 0);
  for (int slot = 0; slot < engine::state_slots(job.options.rule); ++slot)
    communicator.broadcast(std::as_writable_bytes(engine.optimizer_state(slot)), 0);
  if (!lookahead.slow().empty()) communicator.broadcast(std::as_writable_bytes(lookahead.slow()), 0);
  engine.weights_changed();
  return at;
}

}  // namespace paceline::train

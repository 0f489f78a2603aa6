#include "train/checkpoint/restore.h"

#include <fmt/format.h>

#include <span>
#include <type_traits>

#include "base/error.h"
#include "train/checkpoint/first_weights.h"
#include "train/given/test_policy.h"
#include "train/images/evaluate.h"

namespace paceline::train {
namespace {

static_assert(std::is_trivially_copyable_v<Restored>);

/// On rank 0: whether the previous run did not finish evaluating its last epoch.
bool lacks_evaluation(const Job& job, const Restored& at) {
  if (at.standing.counters.update == 0 || !is_evaluated(job, at.standing.counters)) return false;
  const bool has_validation = job.source.validation != nullptr;
  if (validates(job.options, has_validation))
    return at.standing.validation.last_epoch < epoch_number(at.standing.counters);
  return test_policy(job.options, has_validation) == TestSet::every && job.last_epoch &&
         !job.last_epoch->test_loss;
}

/// Rank 0.
void read(const ResumePoint& point, const Job& job, engine::Engine& engine, Lookahead& lookahead,
          BestWeights& best) {
  read_checkpoint(point.path, engine, lookahead.slow(), job.options);
  if (const auto update = point.standing.validation.best_update; update > 0)
    best.read(best_checkpoint_path(point.path.parent_path(), update));
}

/// Sends what rank 0 has read to all ranks.
void share_arrays(const Job& job, comm::Communicator& communicator, engine::Engine& engine,
                  Lookahead& lookahead) {
  communicator.broadcast(std::as_writable_bytes(engine.weights()), 0);
  for (int slot = 0; slot < engine::state_slots(job.options.rule); ++slot)
    communicator.broadcast(std::as_writable_bytes(engine.optimizer_state(slot)), 0);
  if (!lookahead.slow().empty()) communicator.broadcast(std::as_writable_bytes(lookahead.slow()), 0);
  engine.weights_changed();
}

}  // namespace

Restored restore(const Job& job, comm::Communicator& communicator, engine::Engine& engine,
                 Lookahead& lookahead, BestWeights& best, CheckpointWriter& writer,
                 std::vector<std::string>& notes) {
  const bool is_resumed = !job.options.resume.empty();
  communicator.at(0, is_resumed ? "the reading of the checkpoint" : "the first weights");
  if (!is_resumed) {
    first_weights(job, communicator, engine);
    lookahead.begin(engine.weights());
    return {};
  }
  lookahead.begin(engine.weights());  // allocates its memory
  Restored at;
  if (communicator.rank() == 0) {
    read(*job.resume, job, engine, lookahead, best);
    at.standing = job.resume->standing;
    notes.push_back(fmt::format("resumed from {} at update {}", job.resume->path.filename().string(),
                                at.standing.counters.update));
    writer.resumed_from(*job.resume);
    at.evaluates_first = lacks_evaluation(job, at);
  }
  communicator.broadcast(std::as_writable_bytes(std::span(&at, 1)), 0);
  share_arrays(job, communicator, engine, lookahead);
  return at;
}

std::optional<Standing> restore_good(const Job& job, comm::Communicator& communicator, engine::Engine& engine,
                                     Lookahead& lookahead, BestWeights& best, CheckpointWriter& writer,
                                     std::int64_t before) {
  struct Found {
    Standing standing;
    bool is_there = false;
  } found;
  engine.fetch();  // a device's engine accepts weights only after its own were fetched
  if (communicator.rank() == 0) {
    for (auto path = writer.good_before(before); !path.empty() && !found.is_there;
         path = writer.good_before(before)) {
      try {
        const auto point = resume_point_of(path);
        read(point, job, engine, lookahead, best);
        found = {.standing = point.standing, .is_there = true};
      } catch (const base::Error&) {  // damaged meanwhile: take the one before it
        before = *update_of(path);
      }
    }
  }
  communicator.broadcast(std::as_writable_bytes(std::span(&found, 1)), 0);
  if (!found.is_there) return std::nullopt;
  writer.go_back(found.standing);
  share_arrays(job, communicator, engine, lookahead);
  return found.standing;
}

}  // namespace paceline::train

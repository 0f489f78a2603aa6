#include "train/checkpoint/checkpoint_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace paceline::train {
namespace {

/// Ranks meet this often, so that none is reported as holding up the others (comm/failure/rank_status.h)
/// because its disk is slow.
constexpr std::chrono::milliseconds kMeeting{1500};

/// A disk that takes longer is reported, once: with the meetings in between, within 5 s.
constexpr double kSlow_s = 3;
/// A disk that takes longer than this many deadlines is considered dead.
constexpr double kDeadlinesOfADisk = 10;

}  // namespace

bool CheckpointSchedule::writes() const { return !job_.options.out.empty() && job_.options.save_checkpoints; }

bool CheckpointSchedule::is_over(const Counters& counters) const {
  using Unit = CheckpointInterval::Unit;
  const auto& interval = job_.options.checkpoint_every;
  const bool by_time = interval.unit == Unit::seconds && base::seconds_since(last_begun_) >= interval.count;
  const bool ends_epoch = counters.step == 0 && counters.epoch > 0;
  return is_overdue_ || by_time || interval.is_due(Unit::steps, counters.update) ||
         (ends_epoch && interval.is_due(Unit::epochs, counters.epoch));
}

void CheckpointSchedule::take_snapshot() {
  base::expects(tasks_.is_idle(), "nothing is written from the snapshot that is there");
  engine_.fetch();
  slow_weights_.fetch();
  snapshot_.take(arrays_of(engine_, job_.options.rule, slow_weights_.values()));
  last_begun_ = base::Clock::now();
  is_overdue_ = false;
}

void CheckpointSchedule::add_checkpoint(const TrainingState& standing) {
  tasks_.add([this, standing] { files_.checkpoint(snapshot_.arrays(), standing); });
}

void CheckpointSchedule::add_confirmation(const TrainingState& standing) {
  // Weights are known to be good once the step after them has found a finite loss.
  const bool is_rollback = job_.options.on_nan == OnNan::rollback;
  const auto checked = standing.counters.update - standing.guard.above - (is_rollback ? 1 : 0);
  tasks_.add([this, checked] { files_.confirm(checked); });
}

void CheckpointSchedule::keep_first(const TrainingState& standing) {
  if (!is_root() || !writes() || job_.options.on_nan != OnNan::rollback || files_.has_good()) return;
  take_snapshot();
  update_ = standing.counters.update;
  add_checkpoint(standing);
}

void CheckpointSchedule::after_step(const Epochs& epochs, TrainingState standing,
                                    const std::function<std::optional<GuardState>()>& guard) {
  if (!is_root() || !writes()) return;
  const bool is_writing = !tasks_.is_idle();
  if (is_writing) check_disk(false);
  tell();
  if (!is_over(standing.counters)) return;
  is_overdue_ = true;
  if (is_writing) return;
  const auto known = guard();
  if (!known) return;
  standing.guard = *known;
  const measure::InPhase copying(ledger_, measure::Phase::checkpoint);
  take_snapshot();
  update_ = standing.counters.update;
  // The record comes first: steps by which it is ahead of its checkpoint are simply repeated.
  tasks_.add([this, epochs] { files_.record(epochs); });
  add_checkpoint(standing);
  add_confirmation(standing);
}

void CheckpointSchedule::meet(std::int64_t update) {
  const measure::InPhase waiting(ledger_, measure::Phase::checkpoint);
  communicator_.at(update, "the checkpoint");
  // A slow disk must not look like a lost rank. While it writes, the ranks meet repeatedly, well before a
  // collective's deadline.
  const auto between_meetings =
      std::min(std::chrono::milliseconds(std::int64_t{1000} * job_.options.deadline_s / 4), kMeeting);
  double busy = 1;
  while (busy > 0) {
    if (is_root()) check_disk(true);
    busy = is_root() && !tasks_.wait_until_idle(between_meetings) ? 1 : 0;
    communicator_.all_reduce(std::span(&busy, 1), comm::Reduce::max);
  }
  if (!is_root()) return;
  tell();
  tasks_.rethrow();
}

void CheckpointSchedule::before_evaluation(const Epochs& epochs, const TrainingState& standing, bool is_due) {
  if (!is_root() || !writes()) return;
  const auto& counters = standing.counters;
  if (!is_over(counters) && !is_due) return;
  const measure::InPhase copying(ledger_, measure::Phase::checkpoint);
  take_snapshot();
  update_ = counters.update;
  unconfirmed_ = standing.validation;
  tasks_.add([this, epochs] { files_.record(epochs); });
  add_checkpoint(standing);
}

void CheckpointSchedule::keep(const Epochs& epochs, const TrainingState& standing, What what) {
  if (!is_root()) return;
  const auto& counters = standing.counters;
  const measure::InPhase writing(ledger_, measure::Phase::checkpoint);
  const auto begun = std::exchange(unconfirmed_, std::nullopt);
  const bool is_due = writes() && (begun || what.is_due || is_over(counters));
  const bool is_best = writes() && what.is_best;
  if (!begun && (is_due || is_best)) take_snapshot();
  update_ = counters.update;
  tasks_.add([this, epochs] { files_.record(epochs); });
  // Before the checkpoint, because that names this file.
  if (is_best) tasks_.add([this, standing] { files_.best(snapshot_.arrays(), standing); });
  const bool is_begun = begun == standing.validation;
  if (is_due)
    tasks_.add([this, standing, is_begun] {
      if (!is_begun || !files_.has(standing.counters.update))  // it could not be written at that time
        files_.checkpoint(snapshot_.arrays(), standing);
    });
  if (is_due) add_confirmation(standing);
}

void CheckpointSchedule::discard() {
  if (!is_root() || !unconfirmed_) return;
  unconfirmed_.reset();
  tasks_.add([this, update = update_] { files_.discard(update); });
  wait_for_disk();
}

void CheckpointSchedule::wait_for_disk() {
  while (!tasks_.wait_until_idle(kMeeting)) check_disk(true);
}

CheckpointFiles& CheckpointSchedule::written() {
  wait_for_disk();
  return files_;
}

void CheckpointSchedule::go_back(const TrainingState& standing) {
  if (!is_root()) return;
  unconfirmed_.reset();
  is_overdue_ = false;
  last_begun_ = base::Clock::now();
  tasks_.add([this, update = standing.counters.update, best = standing.validation.best_update] {
    files_.go_back(update, best);
  });
  wait_for_disk();
}

std::string CheckpointSchedule::finish(std::int64_t update) {
  meet(update);
  const auto count = is_root() ? files_.not_written() : 0;
  if (count == 0) return "";
  const auto files = base::counted(count, "file");
  if (const auto failure = files_.last_failure(); !failure.empty())
    base::fail(base::ErrorKind::data,
               "{}; it is one of the last files of this run ({} could not be written in all)", failure,
               files);
  return fmt::format("{} of records and checkpoints could not be written in time and {} left out: {} refused",
                     files, count == 1 ? "was" : "were", job_.options.out.string());
}

void CheckpointSchedule::tell() {
  const auto news = files_.take_news();
  if (job_.progress.event)
    for (const auto& event : news.events) job_.progress.event(event);
  if (job_.progress.say)
    for (const auto& sentence : news.sentences) job_.progress.say(sentence);
}

void CheckpointSchedule::check_disk(bool others_wait) {
  const double deadline_s = job_.options.deadline_s, seconds = tasks_.busy_s();
  if (others_wait && seconds > std::min(deadline_s, kSlow_s) && !slow_ && job_.progress.say) {
    slow_ = true;
    const auto& place = job_.backend.place;
    job_.progress.say(fmt::format(
        "{}record and checkpoint of update {} are not written to {} after {:.0f} s; this is given "
        "up after {:.0f} s",
        place.processes > 1 ? fmt::format("rank 0 on host {}: ", place.host) : "", update_,
        job_.options.out.string(), seconds, kDeadlinesOfADisk * deadline_s));
  }
  if (seconds < kDeadlinesOfADisk * deadline_s) return;
  const auto text = fmt::format(
      "--out {}: record and checkpoint of update {} could not be written within {:.0f} s; does its disk "
      "still answer?",
      job_.options.out.string(), update_, seconds);
  // This call can end only after the writing thread, which may never end. So the message is printed now.
  if (job_.progress.say) job_.progress.say(text);
  communicator_.abort(text, base::ErrorKind::data);
  throw base::Error(base::ErrorKind::data, text);
}

}  // namespace paceline::train

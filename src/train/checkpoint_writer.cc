#include "train/checkpoint_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <span>
#include <system_error>

#include "base/error.h"
#include "train/run_events.h"

namespace paceline::train {
namespace {

constexpr std::size_t kKeptCheckpoints = 2;

/// Nobody is to be said to hold up the others (comm/failure/rank_status.h) because its disk is slow.
constexpr std::chrono::milliseconds kMeeting{1500};

/// A disk that takes longer is said to, once: with the meetings between, within 5 s.
constexpr double kSlow_s = 3;
/// A disk that takes longer than so many deadlines is dead.
constexpr double kDeadlinesOfADisk = 10;

}  // namespace

bool CheckpointWriter::writes() const { return !job_.options.out.empty() && job_.options.save_checkpoints; }

void CheckpointWriter::resumed_from(const ResumePoint& point) {
  last_ = point.path.string();
  const auto best = point.validation.best_update;
  if (goes_on_in_place(job_.options)) {
    own_.push_back({point.path, best});
    if (best > 0) bests_.push_back(best);
  } else if (best > 0 && writes()) {
    std::filesystem::copy_file(best_checkpoint_path(point.path.parent_path(), best),
                               best_checkpoint_path(job_.options.out, best),
                               std::filesystem::copy_options::overwrite_existing);
    bests_.push_back(best);
  }
}

void CheckpointWriter::keep(const std::vector<measure::EpochRecord>& epochs, const Counters& counters,
                            const ValidationState& validation, What what) {
  const measure::InPhase writing(ledger_, measure::Phase::checkpoint);
  communicator_.at(counters.update, "the checkpoint");
  const bool is_root = communicator_.rank() == 0;
  if (is_root && (what.checkpoint || what.best))
    engine_.fetch();  // here: an engine's calls come from one thread
  std::future<void> kept;
  if (is_root)
    kept = std::async(std::launch::async, [&] {
      if (job_.keep) job_.keep(epochs);  // first: what a record is ahead of its checkpoint is done again
      if (what.best) best(counters, validation);  // before the checkpoint, which names it
      if (what.checkpoint) checkpoint(counters, validation);
    });
  // A slow disk is no lost rank: while it writes they meet again and again, well before a collective's
  // deadline.
  const auto between_meetings =
      std::min(std::chrono::milliseconds(std::int64_t{1000} * job_.options.deadline_s / 4), kMeeting);
  const auto begin = base::Clock::now();
  double busy = 1;
  while (busy > 0) {
    if (is_root) look_at_disk(base::seconds_since(begin), counters.update);
    busy = is_root && kept.wait_for(between_meetings) != std::future_status::ready ? 1 : 0;
    communicator_.all_reduce(std::span(&busy, 1), comm::Reduce::max);
  }
  if (!is_root) return;
  kept.get();
  if (!writes() || !job_.progress.event) return;
  const auto tell = [&](const std::filesystem::path& path, bool is_best) {
    job_.progress.event(checkpoint_event(counters.update, path.filename().string(), is_best));
  };
  if (what.best) tell(best_checkpoint_path(job_.options.out, counters.update), true);
  if (what.checkpoint) tell(checkpoint_path(job_.options.out, counters.update), false);
}

void CheckpointWriter::look_at_disk(double seconds, std::int64_t update) {
  const double deadline_s = job_.options.deadline_s;
  if (seconds > std::min(deadline_s, kSlow_s) && !slow_ && job_.progress.say) {
    slow_ = true;
    const auto& place = job_.backend.place;
    job_.progress.say(fmt::format(
        "{}record and checkpoint of update {} are not written to {} after {:.0f} s; this is given "
        "up after {:.0f} s",
        place.processes > 1 ? fmt::format("rank 0 on host {}: ", place.host) : "", update,
        job_.options.out.string(), seconds, kDeadlinesOfADisk * deadline_s));
  }
  if (seconds < kDeadlinesOfADisk * deadline_s) return;
  const auto text = fmt::format(
      "--out {}: record and checkpoint of update {} could not be written within {:.0f} s; does its disk "
      "still answer?",
      job_.options.out.string(), update, seconds);
  // The writing thread has to end before this call does, and may never: all are told now.
  if (job_.progress.say) job_.progress.say(text);
  communicator_.abort(text, base::ErrorKind::data);
  throw base::Error(base::ErrorKind::data, text);
}

void CheckpointWriter::best(const Counters& counters, const ValidationState& validation) {
  if (!writes()) return;
  write_checkpoint(best_checkpoint_path(job_.options.out, counters.update), engine_, lookahead_.slow(),
                   job_.options, job_.resolved, counters, validation);
  bests_.push_back(counters.update);
}

void CheckpointWriter::checkpoint(const Counters& counters, const ValidationState& validation) {
  if (!writes()) return;
  const auto path = checkpoint_path(job_.options.out, counters.update);
  write_checkpoint(path, engine_, lookahead_.slow(), job_.options, job_.resolved, counters, validation);
  last_ = path.string();
  own_.push_back({path, validation.best_update});
  std::error_code ignored;  // one that cannot be removed only takes room
  if (own_.size() > kKeptCheckpoints) {
    std::filesystem::remove(own_.front().path, ignored);
    own_.erase(own_.begin());
  }
  std::erase_if(bests_, [&](std::int64_t update) {
    const bool is_needed =
        std::any_of(own_.begin(), own_.end(), [&](const Own& kept) { return kept.best_update == update; });
    if (!is_needed) std::filesystem::remove(best_checkpoint_path(job_.options.out, update), ignored);
    return !is_needed;
  });
}

}  // namespace paceline::train

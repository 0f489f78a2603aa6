#include "train/checkpoint/checkpoint_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error.h"
#include "train/checkpoint/checkpoint_header.h"
#include "train/record/run_events.h"

namespace paceline::train {
namespace {

namespace fs = std::filesystem;

/// Pauses between two attempts at a write that may succeed later.
constexpr std::array kWaits{std::chrono::milliseconds(250), std::chrono::milliseconds(1000),
                            std::chrono::milliseconds(4000)};

}  // namespace

void CheckpointFiles::resumed_from(const ResumePoint& point) {
  const auto best = point.standing.validation.best_update;
  const Own begun{point.path, point.standing.counters.update, best, point.is_good};
  if (goes_on_in_place(job_.options)) {
    take_older(point);
    own_.push_back(begun);
    if (best > 0) bests_.insert(best);
    return;
  }
  begun_from_ = begun;
  if (best > 0 && job_.options.save_checkpoints && !job_.options.out.empty()) {
    fs::copy_file(best_checkpoint_path(point.path.parent_path(), best),
                  best_checkpoint_path(job_.options.out, best), fs::copy_options::overwrite_existing);
    bests_.insert(best);
  }
}

bool CheckpointFiles::try_to_write(const std::string& what, const std::function<void()>& write) {
  for (std::size_t tried = 0;; ++tried) {
    try {
      write();
      is_failing_ = false;
      const std::lock_guard lock(mutex_);
      not_written_.erase(what);
      return true;
    } catch (const base::WriteError& error) {
      if (!is_failing_ && tried < kWaits.size() && base::may_pass(error.code())) {
        std::this_thread::sleep_for(kWaits[tried]);
        continue;
      }
      is_failing_ = true;
      const std::lock_guard lock(mutex_);
      not_written_.insert(what);
      if (failure_.empty()) failure_ = error.what();
      news_.sentences.push_back(fmt::format("{} is not kept: {}{}; the training goes on", what, error.what(),
                                            tried > 0 ? fmt::format(" (tried {} times)", tried + 1) : ""));
      return false;
    }
  }
}

void CheckpointFiles::record(const std::vector<measure::EpochRecord>& epochs) {
  {
    const std::lock_guard lock(mutex_);
    failure_.clear();  // the record is the first of a set of files
  }
  if (job_.keep) try_to_write("the record", [&] { job_.keep(epochs); });
}

void CheckpointFiles::checkpoint(const TrainingArrays& arrays, const TrainingState& standing) {
  const auto& counters = standing.counters;
  const auto path = checkpoint_path(job_.options.out, counters.update);
  watch_space(4 * static_cast<std::int64_t>(arrays.weights.size() * (2 + arrays.optimizer_state.size())));
  if (!try_to_write(fmt::format("the checkpoint of update {}", counters.update),
                    [&] { write_checkpoint(path, arrays, job_.options, job_.resolved, standing); }))
    return;
  if (!has(counters.update)) own_.push_back({path, counters.update, 0, false});
  own_.back().best_update = standing.validation.best_update;
  own_.back().is_good = is_good(standing.guard);
  link_to(path, kLatestLink);
  tell(checkpoint_event(counters.update, path.filename().string(), false));
}

void CheckpointFiles::best(const TrainingArrays& arrays, const TrainingState& standing) {
  const auto& counters = standing.counters;
  const auto path = best_checkpoint_path(job_.options.out, counters.update);
  if (!try_to_write(fmt::format("the best epoch's file of update {}", counters.update),
                    [&] { write_checkpoint(path, arrays, job_.options, job_.resolved, standing); }))
    return;
  bests_.insert(counters.update);
  link_to(path, kBestLink);
  tell(checkpoint_event(counters.update, path.filename().string(), true));
}

void CheckpointFiles::confirm(std::int64_t checked) {
  const auto kept = static_cast<std::size_t>(job_.options.keep_checkpoints);
  const auto needed = good_before(checked + 1);
  for (std::size_t i = 0; i + kept < own_.size();) {
    if (own_[i].path == needed) {
      ++i;
      continue;
    }
    std::error_code failed;  // a file that cannot be removed only takes space
    fs::remove(own_[i].path, failed);
    if (failed)
      say(fmt::format("{} could not be removed ({}) and stays", own_[i].path.string(), failed.message()));
    own_.erase(own_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  std::erase_if(bests_, [&](std::int64_t update) {
    const bool is_needed =
        std::any_of(own_.begin(), own_.end(), [&](const Own& file) { return file.best_update == update; });
    std::error_code ignored;
    if (!is_needed) fs::remove(best_checkpoint_path(job_.options.out, update), ignored);
    return !is_needed;
  });
}

bool CheckpointFiles::has(std::int64_t update) const {
  return !own_.empty() && own_.back().path == checkpoint_path(job_.options.out, update);
}

void CheckpointFiles::discard(std::int64_t update) {
  if (has(update)) remove_last();
}

void CheckpointFiles::remove_last() {
  std::error_code ignored;
  fs::remove(own_.back().path, ignored);
  own_.pop_back();
  const auto before = own_.empty() ? fs::path() : own_.back().path;
  if (before.empty())
    fs::remove(job_.options.out / kLatestLink, ignored);
  else
    link_to(before, kLatestLink);
}

fs::path CheckpointFiles::good_before(std::int64_t before) const {
  for (auto file = own_.rbegin(); file != own_.rend(); ++file)
    if (file->is_good && file->update < before) return file->path;
  return {};
}

fs::path CheckpointFiles::good_before_anywhere(std::int64_t before) const {
  const auto own = good_before(before);
  return own.empty() && begun_from_.is_good && begun_from_.update < before ? begun_from_.path : own;
}

void CheckpointFiles::go_back(std::int64_t update, std::int64_t best_update) {
  while (!own_.empty() && own_.back().update > update)
    remove_last();  // the newest first: a kill leaves a whole run
  std::error_code ignored;
  std::erase_if(bests_, [&](std::int64_t best) {
    if (best > update) fs::remove(best_checkpoint_path(job_.options.out, best), ignored);
    return best > update;
  });
  if (best_update > 0)
    link_to(best_checkpoint_path(job_.options.out, best_update), kBestLink);
  else
    fs::remove(job_.options.out / kBestLink, ignored);
}

void CheckpointFiles::take_older(const ResumePoint& point) {
  if (job_.options.on_nan != OnNan::rollback) return;
  auto paths = checkpoints_in(job_.options.out);
  std::ranges::reverse(paths);
  for (const auto& path : paths) {
    try {
      const auto header = open_header(path);
      const auto update = number_in(header, "update");
      if (update < point.standing.counters.update)
        own_.push_back({path, update, validation_in(header).best_update, says_it_is_good(header)});
    } catch (const base::Error&) {
      // no checkpoint to go back to
    }
  }
}

void CheckpointFiles::watch_space(std::int64_t bytes) {
  if (has_said_space_) return;
  // The old one is kept until the new one is complete.
  const auto lack = lack_of_space(job_.options.out, bytes, 2);
  if (!lack) return;
  has_said_space_ = true;
  say(*lack);
}

void CheckpointFiles::tell(measure::Event event) {
  const std::lock_guard lock(mutex_);
  news_.events.push_back(std::move(event));
}

void CheckpointFiles::say(std::string sentence) {
  const std::lock_guard lock(mutex_);
  news_.sentences.push_back(std::move(sentence));
}

CheckpointFiles::News CheckpointFiles::take_news() {
  const std::lock_guard lock(mutex_);
  return std::exchange(news_, {});
}

std::int64_t CheckpointFiles::not_written() const {
  const std::lock_guard lock(mutex_);
  return std::ssize(not_written_);
}

std::string CheckpointFiles::last_failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

}  // namespace paceline::train

#pragma once

/// The checkpoints of one run on its disk: which files it writes, keeps and removes, and what it does where
/// the disk refuses.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "measure/events.h"
#include "train/checkpoint.h"
#include "train/job.h"

namespace paceline::train {

/// Threads  one at a time, the one that writes; take_news() and what is const: any
class CheckpointKeeper {
 public:
  explicit CheckpointKeeper(const Job& job) : job_(job) {}

  /// The run goes on from this checkpoint: it is the last one now, and may be removed when it is old.
  /// With the file of its best epoch, which is copied where this run writes elsewhere.
  void resumed_from(const ResumePoint& point);

  /// Writes the record with `epochs`, or says that it could not.
  void record(const std::vector<measure::EpochRecord>& epochs);
  /// Writes a checkpoint, or says that it could not. Older ones stay until it is confirmed.
  void checkpoint(const TrainingArrays& arrays, const Standing& standing);
  /// The same as the best on validation so far: a file of its own.
  void best(const TrainingArrays& arrays, const Standing& standing);
  /// The last checkpoint is complete: older ones than the --keep-checkpoints last go, but for the newest good
  /// one of at most `checked` updates, to which a rollback would go.
  void confirm(std::int64_t checked);
  /// Whether the checkpoint of `update` is on disk and the last one.
  [[nodiscard]] bool has(std::int64_t update) const;
  /// The checkpoint of `update`, the last one where it could be written, is no good one: it is removed.
  void discard(std::int64_t update);

  /// The newest good checkpoint of fewer than `before` updates: "" where none is left.
  [[nodiscard]] std::filesystem::path good_before(std::int64_t before) const;
  /// The same or, where this run has none, the one of another directory that it went on from.
  [[nodiscard]] std::filesystem::path good_before_anywhere(std::int64_t before) const;
  /// The run goes on from its checkpoint of `update`: later ones, and later best epochs' files, are removed.
  /// `best_update`: of the best epoch's file that it needs, 0: none.
  void go_back(std::int64_t update, std::int64_t best_update);
  [[nodiscard]] bool has_good() const {
    return !good_before(std::numeric_limits<std::int64_t>::max()).empty();
  }

  /// What has happened since the last call, for the thread that tells.
  struct News {
    std::vector<measure::Event> events;
    std::vector<std::string> sentences;
  };
  [[nodiscard]] News take_news();

  [[nodiscard]] std::int64_t not_written() const;  ///< files that could not be written, so far
  [[nodiscard]] std::string last_failure() const;  ///< of the last round of files; "": all were written

 private:
  /// Calls `write` until it succeeds or the reason will not pass; false: it has not. `what` for the sentence.
  bool try_to_write(const std::string& what, const std::function<void()>& write);
  void tell(measure::Event event);
  void say(std::string sentence);
  /// With --on-nan rollback: the checkpoints of the same training that a rollback may go back to.
  void take_older(const ResumePoint& point);
  void remove_last();
  void watch_space(std::int64_t bytes);

  const Job& job_;
  /// What this run wrote, and what it went on from in the same directory, oldest first: what it may remove.
  struct Own {
    std::filesystem::path path;
    std::int64_t update = 0;
    std::int64_t best_update = 0;  ///< of the best epoch's file that a resume from it needs
    bool is_good = false;          ///< its loss was checked
  };
  std::vector<Own> own_;
  Own begun_from_;                   ///< in another directory; no path: nowhere
  std::vector<std::int64_t> bests_;  ///< updates of the files of best epochs that this run may remove
  bool is_failing_ = false;          ///< the last write failed: the next is tried once
  bool has_said_space_ = false;

  mutable std::mutex mutex_;  ///< of all below
  News news_;
  std::string failure_;
  std::set<std::string> not_written_;  ///< what could not be written so far, by name
};

}  // namespace paceline::train

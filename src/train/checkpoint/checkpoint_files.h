#pragma once

/// CheckpointFiles writes, keeps and removes the checkpoint files of one run, and decides what happens when
/// a write fails.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "measure/events.h"
#include "train/checkpoint/checkpoint.h"
#include "train/given/job.h"

namespace paceline::train {

/// Threads  one at a time, the writing one; take_news() and const functions: any
class CheckpointFiles {
 public:
  explicit CheckpointFiles(const Job& job) : job_(job) {}

  /// The run continues from this checkpoint, which becomes the last one and may be removed when it is old.
  /// The file of its best epoch is copied if this run writes to another directory.
  void resumed_from(const ResumePoint& point);

  /// Writes the record with `epochs`. On failure it reports that it could not.
  void record(const std::vector<measure::EpochRecord>& epochs);
  /// Writes a checkpoint, or reports that it could not. Older ones stay until confirm().
  void checkpoint(const TrainingArrays& arrays, const TrainingState& standing);
  /// Writes the checkpoint of the best epoch on validation so far, in a file of its own.
  void best(const TrainingArrays& arrays, const TrainingState& standing);
  /// The last checkpoint is valid: removes older ones than the last --keep-checkpoints, except for the newest
  /// good one of at most `checked` updates, to which a rollback would go.
  void confirm(std::int64_t checked);
  /// Whether the checkpoint of `update` is on disk and the last one.
  [[nodiscard]] bool has(std::int64_t update) const;
  /// Removes the checkpoint of `update` (the last one, if it could be written), since it is not good.
  void discard(std::int64_t update);

  /// The newest good checkpoint of fewer than `before` updates: "" if there is none.
  [[nodiscard]] std::filesystem::path good_before(std::int64_t before) const;
  /// The same; if this run has none, the one of another directory from which it was resumed.
  [[nodiscard]] std::filesystem::path good_before_anywhere(std::int64_t before) const;
  /// The run continues from its checkpoint of `update`: removes later ones, and later best epochs' files.
  /// `best_update`: of the best epoch's file that it needs, 0: none.
  void go_back(std::int64_t update, std::int64_t best_update);
  [[nodiscard]] bool has_good() const {
    return !good_before(std::numeric_limits<std::int64_t>::max()).empty();
  }

  /// What has happened since the last call, for the thread that reports it.
  struct News {
    std::vector<measure::Event> events;
    std::vector<std::string> sentences;
  };
  [[nodiscard]] News take_news();

  [[nodiscard]] std::int64_t not_written() const;  ///< number of files that could not be written so far
  [[nodiscard]] std::string last_failure() const;  ///< of the last round of files; "": all were written

 private:
  /// Calls `write` until it succeeds (true) or a retry is useless (false). `what` names it in messages.
  bool try_to_write(const std::string& what, const std::function<void()>& write);
  void tell(measure::Event event);
  void say(std::string sentence);
  /// With --on-nan rollback: takes over the checkpoints of the same training to which a rollback may go.
  void take_older(const ResumePoint& point);
  void remove_last();
  void watch_space(std::int64_t bytes);

  const Job& job_;
  /// A checkpoint that this run wrote, or continued from in the same directory: it may be removed.
  struct Own {
    std::filesystem::path path;
    std::int64_t update = 0;
    std::int64_t best_update = 0;  ///< of the best epoch's file that a resume from it needs
    bool is_good = false;          ///< its loss was checked
  };
  std::vector<Own> own_;
  Own begun_from_;                ///< in another directory; empty path: none
  std::set<std::int64_t> bests_;  ///< updates of the best epochs' files that this run may remove
  bool is_failing_ = false;       ///< the last write failed: the next is tried only once
  bool has_said_space_ = false;

  mutable std::mutex mutex_;  ///< guards the members below
  News news_;
  std::string failure_;
  std::set<std::string> not_written_;  ///< names of what could not be written so far
};

}  // namespace paceline::train

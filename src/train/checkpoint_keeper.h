#pragma once

/// The checkpoints of one run on its disk: which files it writes, keeps and removes, and what it does where
/// the disk refuses.

#include <cstdint>
#include <filesystem>
#include <functional>
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
  void checkpoint(const TrainingArrays& arrays, const Counters& counters, const ValidationState& validation);
  /// The same as the best on validation so far: a file of its own.
  void best(const TrainingArrays& arrays, const Counters& counters, const ValidationState& validation);
  /// The last checkpoint is a good one: older ones than the --keep-checkpoints last go.
  void confirm();
  /// Whether the checkpoint of `update` is on disk and the last one.
  [[nodiscard]] bool has(std::int64_t update) const;
  /// The checkpoint of `update`, the last one where it could be written, is no good one: it is removed.
  void discard(std::int64_t update);

  /// What has happened since the last call, for the thread that tells.
  struct News {
    std::vector<measure::Event> events;
    std::vector<std::string> sentences;
  };
  [[nodiscard]] News take_news();

  [[nodiscard]] std::string last_checkpoint() const;  ///< "": none yet
  [[nodiscard]] std::int64_t not_written() const;     ///< files that could not be written, so far
  [[nodiscard]] std::string last_failure() const;     ///< of the last round of files; "": all were written

 private:
  /// Calls `write` until it succeeds or the reason will not pass; false: it has not. `what` for the sentence.
  bool try_to_write(const std::string& what, const std::function<void()>& write);
  void tell(measure::Event event);
  void say(std::string sentence);
  void watch_space(std::int64_t bytes);

  const Job& job_;
  /// What this run wrote, and what it went on from in the same directory, oldest first: what it may remove.
  struct Own {
    std::filesystem::path path;
    std::int64_t best_update = 0;  ///< of the best epoch's file that a resume from it needs
  };
  std::vector<Own> own_;
  std::vector<std::int64_t> bests_;  ///< updates of the files of best epochs that this run may remove
  bool is_failing_ = false;          ///< the last write failed: the next is tried once
  bool has_said_space_ = false;

  mutable std::mutex mutex_;  ///< of all below
  News news_;
  std::string last_, failure_;
  std::set<std::string> not_written_;  ///< what could not be written so far, by name
};

}  // namespace paceline::train

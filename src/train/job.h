#pragma once

/// What all workers of one run share: made by run() before they start, constant while they work.

#include <atomic>
#include <functional>
#include <optional>
#include <stop_token>
#include <vector>

#include "data/augment.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "data/read_count.h"
#include "graph/graph.h"
#include "graph/layout.h"
#include "measure/gpu_watch.h"
#include "train/backend.h"
#include "train/buckets.h"
#include "train/options.h"
#include "train/progress.h"
#include "train/resolve.h"
#include "train/resume_point.h"
#include "train/update_count.h"

namespace paceline::train {

struct Job {
  const Options& options;
  const Resolved& resolved;
  const graph::Graph& graph;
  const data::Source& source;
  const Backend& backend;
  const Progress& progress;
  std::stop_token stop;
  std::optional<ResumePoint> resume;  ///< what rank 0 reads where options.resume is given
  /// Rank 0: the epoch with which the checkpoint ended, as the record beside it has it; none: it has not.
  std::optional<measure::EpochRecord> last_epoch;
  std::vector<std::vector<int>> cores;      ///< [worker of this process]: to bind to; empty: nobody is bound
  base::TimePoint started;                  ///< of the command
  std::atomic<std::int64_t>& updates_done;  ///< written by the first rank of this process
  UpdateCount& update_count;                ///< set by rank 0: updates_done, where it outlives this process
  std::atomic<double>& first_step_s;        ///< by rank 0: Record::first_step_s; 0: not yet
  const data::CountedDataset& test_reads;   ///< counts what is read of source.test
  data::LoaderPool& pool;                   ///< the threads that prepare batches, of all workers here
  /// Rank 0 calls it after each epoch with all epochs so far, so that a run that is killed leaves them
  /// behind.
  std::function<void(const std::vector<measure::EpochRecord>&)> keep;
  measure::GpuWatch* gpu_watch = nullptr;  ///< reads the GPUs of this process; nullptr: it uses none
  bool peak_is_ours = false;               ///< the process's peak of memory is that of this run
  /// By rank 0, before the held-back test set is read: its images. They count as read from then on, so that a
  /// kill in the middle hides no reading.
  std::atomic<std::int64_t>& test_reads_begun;
};

/// The options that the engine of worker `local_rank` of this process is compiled with (without the
/// statistics hook, which is a rank's own).
[[nodiscard]] engine::CompileOptions compile_options(const Options& options, const Resolved& resolved,
                                                     const ProcessPlacement& place, int local_rank);
/// The same for what looks ahead only: it reduces no statistics, but must be told that the run will.
[[nodiscard]] engine::CompileOptions planning_options(const Options& options, const Resolved& resolved,
                                                      const ProcessPlacement& place);

/// The loader options of `rank`.
[[nodiscard]] data::LoaderOptions loader_options(const Options& options, const Resolved& resolved, int rank);

[[nodiscard]] data::AugmentOptions augment_options(const Options& options, const data::Source& source);

/// Whether the record has the loss of every step: where it was asked for, and of short trainings.
[[nodiscard]] bool keeps_steps(const Job& job);

}  // namespace paceline::train

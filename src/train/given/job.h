#pragma once

/// Job: what all workers of one run share. run() makes it before they start; it is constant while they work.

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "data/augment.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "graph/graph.h"
#include "graph/layout.h"
#include "measure/events.h"
#include "measure/gpu_watch.h"
#include "measure/record.h"
#include "train/checkpoint/resume_point.h"
#include "train/given/backend.h"
#include "train/given/options.h"
#include "train/given/resolve.h"
#include "train/given/schedule.h"
#include "train/record/evaluations.h"

namespace paceline::train {

/// Called by rank 0's thread during the run. All may be empty.
struct Progress {
  std::function<void(const std::string& line)>
      say;  ///< one line for the screen: the plan, the learning rate's rule, a warning
  std::function<void(std::int64_t step, std::int64_t steps, double loss, double images_per_s)> step;
  std::function<void(const measure::EpochRecord&)> epoch;
  std::function<void(const measure::Event&)>
      event;  ///< for events.jsonl (docs/formats.md); also called by run()
};

/// What the workers of a run have done so far.
struct RunCounts {
  std::atomic<std::int64_t> updates_done{0};  ///< written by the first rank of this process
  std::atomic<double> first_step_s{0};        ///< set by rank 0: Record::first_step_s; 0: not yet
  /// Set by rank 0 to the number of images before the held-back test set is read. They count as read from
  /// then on, so that a kill in between hides no reading.
  std::atomic<std::int64_t> test_reads_begun{0};
};

struct Job {
  const Options& options;
  const Resolved& resolved;
  const graph::Graph& graph;
  /// For images of the size that evaluation sees, with the same parameters; null: `graph` is for these too.
  const graph::Graph* evaluation_graph;
  const data::Source& source;
  data::Sampler sampler;  ///< the order of source.train
  const Backend& backend;
  const Progress& progress;
  std::stop_token stop;
  std::optional<ResumePoint> resume;  ///< what rank 0 reads if options.resume is given
  /// Rank 0: the record of the epoch at whose end the checkpoint was written; none if there is no such epoch.
  std::optional<measure::EpochRecord> last_epoch;
  std::vector<std::vector<int>> cores = {};  ///< [worker of this process] to bind to; empty: do not bind
  RunCounts& counts;
  UpdateCount& update_count;  ///< set by rank 0: a copy of counts.updates_done that survives a kill
  const data::CountedDataset& test_reads;  ///< counts reads of source.test
  data::LoaderPool& pool;                  ///< of all loader threads of this process
  /// Rank 0 calls it after each epoch with all epochs so far, so that a killed run leaves them in its record.
  std::function<void(const std::vector<measure::EpochRecord>&)> keep = {};
  measure::GpuWatch* gpu_watch = nullptr;  ///< reads the GPUs of this process; null if it uses none
  bool peak_is_ours = false;               ///< whether the process's peak memory is that of this run
  EvaluationLog& evaluations;              ///< of rank 0

  /// Index of a worker of this process within it.
  [[nodiscard]] int local_rank(int rank) const {
    return rank - backend.place.process * resolved.local_workers;
  }
};

/// The options for compiling the engine of worker `local_rank` of this process, without the rank's own hook
/// for statistics.
[[nodiscard]] engine::CompileOptions compile_options(const Options& options, const Resolved& resolved,
                                                     const Backend& backend, int local_rank);
/// The same with a hook that reduces nothing: for plans, which must know that the run has one, and for
/// evaluation, which uses running statistics.
[[nodiscard]] engine::CompileOptions planning_options(const Options& options, const Resolved& resolved,
                                                      const Backend& backend, int local_rank = 0);

/// The order of the training samples.
///
/// Cost     with --sampler balanced, the labels of all of them
[[nodiscard]] data::Sampler sampler_of(const Options& options, const Resolved& resolved,
                                       const data::Source& source);

/// The loader options of `rank`.
[[nodiscard]] data::LoaderOptions loader_options(const Options& options, const Resolved& resolved, int rank);

/// The options for compiling an engine that only evaluates, for worker `local_rank` of this process.
[[nodiscard]] engine::CompileOptions evaluation_compile_options(const Options& options,
                                                                const Resolved& resolved,
                                                                const Backend& backend, int local_rank);

[[nodiscard]] data::AugmentOptions augment_options(const Options& options, const data::Source& source);

/// Whether the record has the loss of every step: if asked for, and for short trainings.
[[nodiscard]] bool keeps_steps(const Job& job);

}  // namespace paceline::train

#pragma once

/// Runs one training, from options to record.

#include <cstdint>
#include <stop_token>
#include <string>

#include "comm/communicator.h"
#include "graph/plan.h"
#include "measure/record.h"
#include "train/given/backend.h"
#include "train/given/job.h"
#include "train/given/options.h"
#include "train/record/gather.h"

namespace paceline::train {

/// Runs rank `communicator.rank()` of `job`, and returns its figures.
///
/// Errors   Error(data) naming step, learning rate and last good checkpoint when the loss is not finite;
///          Error(comm) when a peer is lost; any error of loader, engine and checkpoints
[[nodiscard]] WorkerResult work(const Job& job, comm::Communicator& communicator);

/// The properties of a run, found without running it.
struct Setup {
  Resolved resolved;
  std::string excess;  ///< how the plan exceeds the memory (train/prepare/memory.h); empty: it fits
  graph::MemoryPlan
      plan;  ///< of the whole run: all workers, loaders, data set, the process itself, by purpose
  measure::Record::Memory memory;     ///< the same for a record, without lines
  std::int64_t checkpoint_bytes = 0;  ///< of all at one time, at the most; 0: none are written
  std::string images;  ///< a sentence: where the images are kept and why; empty if there is no choice
  measure::Record::Model model;
  measure::Record::Data data;
};
/// Errors   Error(usage), Error(data) as run(); a plan that does not fit is no error here
[[nodiscard]] Setup inspect(const Options& options, const Backend& backend);

/// inspect(), and everything else that run() would open or refuse before its first step: the output
/// directory, the checkpoint that it resumes from, the place of its timeline. Writes nothing.
///
/// Errors   as run(), except for a plan that does not fit
[[nodiscard]] Setup rehearse(const Options& options, const Backend& backend);

/// The largest local batch for which memory and data set suffice with these options; 0 if there is none.
[[nodiscard]] std::int64_t largest_batch(const Options& options, const Backend& backend);

/// Trains with the given options. With several processes every one calls it with the same options: the first
/// writes record and checkpoints and returns the whole record, the others return what they know themselves.
/// When `stop` is requested it ends early, with status "interrupted" and everything saved.
///
/// Errors   Error(usage) for impossible options (batch 0, a global batch that does not divide or exceeds the
///          data set); Error(device) when the plan exceeds the memory, with both numbers and the largest
///          batch that fits; Error(data), also for a loss that is not finite, naming step, learning rate and
///          the last good checkpoint; Error(comm)
/// Threads  starts a thread for each of this process's workers and joins them
[[nodiscard]] measure::Record run(const Options& options, const Backend& backend, std::stop_token stop,
                                  const Progress& progress);

}  // namespace paceline::train

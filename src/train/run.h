#pragma once

/// One training, from options to record: where data, engine, communicator and measuring meet.

#include <cstdint>
#include <stop_token>

#include "graph/plan.h"
#include "measure/record.h"
#include "train/backend.h"
#include "train/options.h"
#include "train/progress.h"

namespace paceline::train {

/// What a run of these options would need and has, found without running it.
struct Setup {
  std::string excess;  ///< what of the plan does not fit (train/memory.h); empty: it fits
  graph::MemoryPlan
      plan;  ///< of the whole run: all workers, loaders, data set, the process itself, by purpose
  measure::Record::Memory memory;  ///< the same for a record, without lines
  std::int64_t updates = 0;        ///< of the whole run
  int workers = 1, threads = 1;    ///< threads of each worker
  std::int64_t local_batch = 0, global_batch = 0, steps_per_epoch = 0;
  std::string learning_rate;  ///< a sentence
  std::string precision;      ///< that will be used: "fp32"
  std::int64_t checkpoint_bytes = 0;
  int checkpoint_files = 0;  ///< that are there at once at the most; 0: none are written
  std::string images;        ///< where the images lie and why, a sentence; empty where there is no choice
  measure::Record::Model model;
  measure::Record::Data data;
};
/// Errors   Error(usage), Error(data) as run() has them; a plan that does not fit is no error here
[[nodiscard]] Setup inspect(const Options& options, const Backend& backend);

/// The largest local batch that memory and data set allow for these options; 0 when none does.
[[nodiscard]] std::int64_t largest_batch(const Options& options, const Backend& backend);

/// Trains as told. With several processes every one calls it with the same options; the first writes record
/// and checkpoints and gets the whole record, the others get what they know themselves. Stops early, with
/// status "interrupted" and everything kept, when `stop` is requested.
///
/// Errors   Error(usage) for impossible options (batch 0, a global batch that does not divide or exceeds the
///          data set); Error(device) when the plan exceeds the memory there is, with both numbers and the
///          largest batch that fits; Error(data); Error(comm). A loss that is no longer finite is Error(data)
///          naming step, learning rate and the last good checkpoint.
/// Threads  starts a thread for each of this process's workers and joins them
[[nodiscard]] measure::Record run(const Options& options, const Backend& backend, std::stop_token stop,
                                  const Progress& progress);

}  // namespace paceline::train

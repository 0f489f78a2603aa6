#pragma once

/// Turns options into the exact settings of a run: batches, steps, threads, precision. Checks every rule for
/// options before anything is allocated.

#include <cstdint>
#include <memory>
#include <string>

#include "data/dataset.h"
#include "engine/engine.h"
#include "train/given/options.h"
#include "train/given/schedule.h"

namespace paceline::train {

/// The rule for update `update` (from 0).
///
/// LARS keeps a velocity that contains past learning rates, v = m v + lr g, so after a change the old part
/// still has the old rate. With `--momentum-correction` the old part is multiplied by m times lr / (previous
/// lr), so that all of the velocity has the current rate (Goyal et al. 2017, section 3). The other rules keep
/// gradients without the rate and multiply by it last, so they need no correction.
[[nodiscard]] engine::UpdateRule rule_of_update(const Options& options, double peak, std::int64_t update,
                                                const Length& length);

/// Images that each engine keeps on its device, by purpose; 0 if the host prepares them.
struct StoredImages {
  std::int64_t train = 0, validation = 0, test = 0;  ///< they lie in this order
  [[nodiscard]] std::int64_t total() const { return train + validation + test; }
};

/// The exact settings of one run. Made once, then constant.
struct Resolved {
  int workers = 1;
  int local_workers = 1;        ///< workers of each process
  int threads = 1;              ///< cores that a worker's engine uses
  int cores = 1;                ///< cores that this process may use
  int sharers = 1;              ///< processes that may use the same cores
  bool oversubscribed = false;  ///< local_workers * sharers * threads > cores
  std::int64_t local_batch = 0, global_batch = 0;
  std::string batch_given_as;  ///< "local" or "global"
  std::int64_t passes_per_worker = 1;
  std::int64_t engine_batch = 0;  ///< samples of a pass: the shard, the micro-batch or the local batch
  int engine_shard = 0;  ///< > 0: the engine joins shards of its batch itself (--shard with --bn sync)
  std::int64_t train_samples = 0;
  std::int64_t steps_per_epoch = 0;
  std::int64_t dropped_per_epoch = 0;
  Length length;         ///< of the whole training
  std::int64_t end = 0;  ///< updates after which this run ends: length.updates, or by pause_after_epochs
  engine::Precision precision = engine::Precision::f32;
  std::shared_ptr<const engine::KernelAlgorithms> algorithms;  ///< of every problem; null: by default
  ScaledRate rate;
  data::DataIdentity data = {};  ///< of a whole training, at the first process: set by prepare()
  StoredImages stored;  ///< set by plan_images() (train/prepare/prepare.h); resolve() leaves it at none
};

/// What resolve() must know of data and machine.
struct RunConditions {
  std::int64_t train_samples = 0;
  int cores = 1;
  engine::Precision auto_precision = engine::Precision::f32;  ///< of --precision auto on this device
  int processes = 1;
  int sharers = 1;  ///< processes that may use the same cores
};

/// The precision that `asked` ("fp32", "bf16", "fp16", "auto") means where auto takes `of_auto`.
///
/// Errors   Error(usage): there is no such precision
[[nodiscard]] engine::Precision precision_of(const std::string& asked, engine::Precision of_auto);

/// --target and --evaluate-steps need a set that is evaluated during the training.
///
/// Errors   Error(usage)
void require_evaluations(const Options& options, bool has_validation);

/// Errors   Error(usage): one sentence for the first rule that is broken
[[nodiscard]] Resolved resolve(const Options& options, const RunConditions& circumstances);

}  // namespace paceline::train

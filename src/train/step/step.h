#pragma once

/// Stepper runs a global step of one worker: forward and backward by shards, reduction of buckets, update.

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "comm/communicator.h"
#include "data/loader.h"
#include "engine/engine.h"
#include "measure/ledger.h"
#include "measure/record.h"
#include "train/given/job.h"
#include "train/step/buckets.h"
#include "train/step/exposed_comm.h"
#include "train/step/loss_guard.h"
#include "train/step/shards.h"
#include "train/step/votes.h"

namespace paceline::train {

/// The result of a step.
struct StepResult {
  engine::LossSums local;           ///< this worker's samples
  Votes all;                        ///< of all ranks
  Verdict verdict = Verdict::good;  ///< on the loss, the same on every rank

  /// Whether the update was made; otherwise it was skipped on every rank.
  [[nodiscard]] bool is_updated() const { return verdict == Verdict::good || verdict == Verdict::above; }
};

/// Threads  one, the worker's own
class Stepper {
 public:
  Stepper(const Job& job, engine::Engine& engine, comm::Communicator& communicator, measure::Ledger& ledger,
          CollectiveLog& log, LossGuard& guard, double bucket_mb);

  /// Runs global step `update` (from 0) on `batch` at learning rate `lr`. `enough` is this rank's vote to end
  /// the measured window after this step.
  ///
  /// Errors   Error(comm) when a peer is lost
  StepResult run(const data::Batch& batch, std::int64_t update, double lr, bool enough);

  [[nodiscard]] const Buckets& buckets() const { return buckets_; }
  /// Makes one record per bucket in `records`, without times. With `keeps_ready` each step from now on adds
  /// the time at which every bucket was posted (with one worker: could have been). There is room for `steps`
  /// steps; later ones are not kept. `records` must outlive this.
  void begin_window(std::vector<measure::BucketRecord>& records, std::size_t steps, bool keeps_ready);

 private:
  engine::LossSums forward_and_backward(const data::Batch& batch, std::int64_t update, bool enough);
  /// Gradients in [0, ready) are final: records the time of every bucket that is now complete.
  void note_ready(std::int64_t ready);
  [[nodiscard]] Votes votes_of(const engine::LossSums& sums, bool enough) const;
  Votes agree(const engine::LossSums& local, std::int64_t update, bool enough);

  const Job& job_;
  engine::Engine& engine_;
  comm::Communicator& communicator_;
  measure::Ledger& ledger_;
  CollectiveLog& log_;
  Buckets buckets_;
  BucketReducer reducer_;
  ShardSums shard_sums_;
  LossGuard& guard_;
  std::span<measure::BucketRecord> ready_records_;
  std::size_t ready_buckets_ = 0;             ///< of this step
  double backward_before_s_ = 0;              ///< of this step's earlier shards
  base::TimePoint backward_begin_{};          ///< of this shard
  std::array<float, kVoteFloats> control_{};  ///< the votes in transfer
  std::unique_ptr<comm::Pending> control_pending_;
};

}  // namespace paceline::train

#pragma once

/// Stepper runs a global step of one worker: forward and backward by shards, reduction of buckets, update.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/summation_tree.h"
#include "comm/communicator.h"
#include "data/loader.h"
#include "engine/engine.h"
#include "measure/ledger.h"
#include "measure/record.h"
#include "train/given/job.h"
#include "train/step/buckets.h"
#include "train/step/exposed_comm.h"
#include "train/step/loss_guard.h"

namespace paceline::train {

/// The engine's input for a shard (a fixed number of samples whose gradient is one term of the sum): shard
/// `shard` of `batch` in step `update` (from 0).
[[nodiscard]] inline engine::StepInput shard_input(const data::Batch& batch, const Resolved& resolved,
                                                   std::int64_t shard, std::int64_t update) {
  const std::int64_t samples = resolved.engine_batch;
  const std::size_t pixels = batch.images.size() / batch.labels.size();  // 0 if the engine has the images
  const std::size_t draws = batch.draws.size() / batch.labels.size();    // then 1, else 0
  return {.images = batch.images.subspan(static_cast<std::size_t>(shard * samples) * pixels,
                                         static_cast<std::size_t>(samples) * pixels),
          .labels = batch.labels.subspan(static_cast<std::size_t>(shard * samples),
                                         static_cast<std::size_t>(samples)),
          .gradient_scale = 1.0 / static_cast<double>(resolved.global_batch),
          .step = static_cast<std::uint64_t>(update),
          .first_position = batch.first_position + shard * samples,
          .draws = batch.draws.subspan(static_cast<std::size_t>(shard * samples) * draws,
                                       static_cast<std::size_t>(samples) * draws)};
}

// Adds gradients of shards in the order of base/summation_tree.h, whatever the number of workers (--shard).
//
// The global batch is M shards. A worker has m = M / N consecutive ones. If m is a power of two they are a
// whole subtree, the worker's sum is that subtree's root, and the communicator's tree over ranks is the rest
// of the same tree. So every N with such an m gives the same bits (for N = 1 any m does).
//
// A worker computes its shards one after another and keeps one partial sum per level of the tree.

class ShardSums {
 public:
  /// For `shards` shards per step. Its sums lie in the memory of `gradient` and have its size.
  ShardSums(std::int64_t shards, base::Array gradient);

  /// The number of arrays of the gradient's size that it holds besides the gradient, for the memory plan.
  [[nodiscard]] static std::int64_t arrays(std::int64_t shards);

  /// Adds the gradient of the next shard, which must not be the step's last one.
  void add(base::Array gradient);
  /// Adds everything kept to the last shard's gradient, in place, on [begin, end) only: bucket by bucket.
  void join_last(base::Array gradient, std::int64_t begin, std::int64_t end) const;
  /// Begins a new step.
  void clear() { counter_.clear(); }

 private:
  [[nodiscard]] base::Array kept(int level) const { return levels_[static_cast<std::size_t>(level)].array(); }
  std::int64_t shards_;
  base::TreeCounter counter_;
  std::vector<base::OwnedArray> levels_;  ///< the partial sum of 2^level shards
};

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

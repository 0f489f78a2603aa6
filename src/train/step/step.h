#pragma once

/// StepRunner is the interface of the ways to run the steps of a worker. The way of Stepper: forward and
/// backward by shards, reduction of buckets, update, each waited for.

#include <array>
#include <cstdint>
#include <optional>
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
  const auto part = [&](auto list) {  // of equally many values a sample; none if the step does without
    const std::size_t each = list.size() / batch.labels.size();
    const auto samples = static_cast<std::size_t>(resolved.engine_batch);
    return list.subspan(static_cast<std::size_t>(shard) * samples * each, samples * each);
  };
  return {.images = part(batch.images),
          .labels = part(batch.labels),
          .gradient_scale = 1.0 / static_cast<double>(resolved.global_batch),
          .step = static_cast<std::uint64_t>(update),
          .first_position = batch.first_position + shard * resolved.engine_batch,
          .draws = part(batch.draws),
          .second_labels = part(batch.second_labels)};
}

// Adds the gradients of a worker's passes: of micro-batches one after the other, of shards in the order of
// base/summation_tree.h, whatever the number of workers (--shard).
//
// The global batch is M shards. A worker has m = M / N consecutive ones. If m is a power of two they are a
// whole subtree, the worker's sum is that subtree's root, and the communicator's tree over ranks is the rest
// of the same tree. So every N with such an m gives the same bits (for N = 1 any m does).
//
// A worker computes its shards one after another and keeps one partial sum per level of the tree.

enum class PassOrder { tree, one_by_one };
[[nodiscard]] inline PassOrder order_of_passes(const Options& options) {
  return options.micro_batch > 0 ? PassOrder::one_by_one : PassOrder::tree;
}

class ShardSums {
 public:
  /// For `passes` passes per step. Its sums lie in the memory of `gradient` and have its size.
  ShardSums(std::int64_t passes, base::Array gradient, PassOrder order = PassOrder::tree);

  /// The number of arrays of the gradient's size that it holds besides the gradient, for the memory plan.
  [[nodiscard]] static std::int64_t arrays(std::int64_t passes, PassOrder order = PassOrder::tree);

  /// Adds the gradient of the next pass, which must not be the step's last one.
  void add(base::Array gradient);
  /// Adds everything kept to the last pass's gradient, in place, on [begin, end) only: bucket by bucket.
  void join_last(base::Array gradient, std::int64_t begin, std::int64_t end) const;
  /// Begins a new step.
  void clear();

 private:
  [[nodiscard]] base::Array kept(int level) const { return levels_[static_cast<std::size_t>(level)].array(); }
  const std::int64_t passes_;
  const PassOrder order_;
  std::int64_t added_ = 0;
  base::TreeCounter counter_;             ///< of a tree
  std::vector<base::OwnedArray> levels_;  ///< the partial sum of 2^level shards; or one, of all added
};

/// What the host knows of a step when it posts it.
struct StepOrder {
  std::int64_t update = 0;  ///< global step, from 0
  double lr = 0;
  bool enough = false;          ///< this rank's vote to end the measured window after this step
  base::TimePoint begin{};      ///< when the host turned to the step,
  base::TimePoint has_batch{};  ///< and when its loader had delivered the batch
};

/// Squared norms of gradients in a step, for the noise scale (measure/noise_scale.h).
struct StepSquares {
  double small = 0;  ///< of this worker's small batches: their sum, over the number of all workers' batches
  double large = 0;  ///< of the global batch
};

/// Says in which steps gradients are squared: with several small batches (shards, micro-batches, or those of
/// the workers) in every k-th step of a training. Gradients are summed as parts of the global batch's mean.
class SquaresSchedule {
 public:
  explicit SquaresSchedule(const Job& job);
  [[nodiscard]] bool is_due(std::int64_t update) const { return every_ > 0 && (update + 1) % every_ == 0; }
  /// `sum`: of the squared norms of this worker's parts.
  [[nodiscard]] double small_of(double sum) const { return parts_ * sum; }
  /// What an epoch's squares say of themselves; nothing if no step is due.
  [[nodiscard]] std::optional<measure::GradientSquares> described() const;

 private:
  std::int64_t every_ = 0, small_batch_ = 0, large_batch_ = 0;
  double parts_ = 1;  ///< of the global batch
};

/// The result of a step.
struct StepResult {
  engine::LossSums local;           ///< this worker's samples
  Votes all;                        ///< of all ranks
  Verdict verdict = Verdict::good;  ///< on the loss, the same on every rank
  double gradient_norm = 0;         ///< with --clip-norm, before clipping
  std::optional<StepSquares> squares = {};

  /// Whether the update was made; otherwise it was skipped on every rank.
  [[nodiscard]] bool is_updated() const { return verdict == Verdict::good || verdict == Verdict::above; }
};

/// A step that was done.
struct TakenStep {
  StepOrder order;
  std::int64_t epoch = 0;  ///< from 0
  StepResult result;
  /// Of a queued step: from the end of the previous step (or `order.begin` if the queue was empty) to the end
  /// of its update. No end: it lasts until the worker has dealt with it.
  base::TimePoint begin{};
  std::optional<base::TimePoint> end = {};
  double blocked_s = 0;  ///< of a queued step: waiting for sums over the ranks
};

/// What the steps of a worker work with.
struct StepContext {
  const Job& job;
  engine::Engine& engine;
  comm::Communicator& communicator;
  measure::Ledger& ledger;
  CollectiveLog& log;  ///< of the buckets
  LossGuard& guard;
};

/// The steps of a worker are waited for one by one (Stepper), queued on a device (queued_steps.h), or run
/// with all data passing worker 0 (data_parallel.h). In each way they are posted and taken; a step that is
/// waited for is done when it is posted.
///
/// Threads  one, the worker's own
class StepRunner {
 public:
  explicit StepRunner(const StepContext& in)
      : job_(in.job),
        engine_(in.engine),
        communicator_(in.communicator),
        ledger_(in.ledger),
        log_(in.log),
        guard_(in.guard) {}
  virtual ~StepRunner() = default;

  /// The buckets of a step, and the array that is cut into them; null: nothing is reduced in buckets.
  [[nodiscard]] virtual const Buckets* buckets() const = 0;
  [[nodiscard]] virtual base::Array array() const = 0;
  /// Collectives per step, the same on every rank.
  [[nodiscard]] virtual std::size_t collectives() const { return buckets()->count(); }
  /// Bytes of the votes that are in the buckets, behind the gradients.
  [[nodiscard]] virtual std::int64_t vote_bytes() const { return 0; }
  /// Makes one record per bucket in `records`, as begin_records() does. With `keeps_ready` each step from now
  /// on adds the time at which every bucket was posted (with one worker: could have been). `records` must
  /// outlive this.
  ///
  /// Requires  is_empty()
  void begin_window(std::vector<measure::BucketRecord>& records, std::size_t steps, bool keeps_ready);

  /// The batch of the step after `done`, from `loader` (with --parallel data-parallel only worker 0 has one).
  /// Fills in order.begin and order.has_batch. Valid until the next call.
  [[nodiscard]] virtual const data::Batch& next_batch(data::Loader* loader, const Counters& done,
                                                      StepOrder& order) = 0;
  /// Posts a step.
  ///
  /// Requires  not is_full()
  /// Errors    Error(comm) when a peer is lost
  virtual void post(const data::Batch& batch, const StepOrder& order) = 0;
  /// Whether the oldest step must be taken before the next is posted.
  [[nodiscard]] virtual bool is_full() const = 0;
  /// Whether all posted steps were taken.
  [[nodiscard]] virtual bool is_empty() const = 0;
  /// Returns the oldest step, after the guard has judged its loss.
  [[nodiscard]] virtual TakenStep take() = 0;
  /// Returns the oldest step without judging its loss.
  [[nodiscard]] virtual TakenStep drop() = 0;
  /// The guard's state after all posted steps, for which it waits; nothing if one of them ends the training.
  [[nodiscard]] virtual std::optional<GuardState> guard_when_empty() = 0;

 protected:
  const Job& job_;
  engine::Engine& engine_;
  comm::Communicator& communicator_;
  measure::Ledger& ledger_;
  CollectiveLog& log_;
  LossGuard& guard_;
  std::span<measure::BucketRecord> ready_records_;  ///< empty: no times are added
};

/// Steps that are done when they are posted.
class WaitedSteps : public StepRunner {
 public:
  using StepRunner::StepRunner;

  const data::Batch& next_batch(data::Loader* loader, const Counters& done, StepOrder& order) override;
  void post(const data::Batch& batch, const StepOrder& order) override;
  [[nodiscard]] bool is_full() const override { return waited_.has_value(); }
  [[nodiscard]] bool is_empty() const override { return !waited_; }
  [[nodiscard]] TakenStep take() override;
  [[nodiscard]] TakenStep drop() override { return take(); }
  [[nodiscard]] std::optional<GuardState> guard_when_empty() override { return guard_.state(); }

 protected:
  /// This worker's part of the step after `done`; `whole`: what the worker's loader has, if it has one.
  virtual const data::Batch& part_of(const data::Batch* whole, const Counters& /*done*/) { return *whole; }
  virtual StepResult run(const data::Batch& batch, const StepOrder& order) = 0;
  [[nodiscard]] Votes votes_of(const engine::LossSums& sums, const StepOrder& order) const;
  /// Returns StepResult::gradient_norm.
  double apply_update(const StepOrder& order);

 private:
  std::optional<TakenStep> waited_;  ///< posted, not taken
};

class Stepper final : public WaitedSteps {
 public:
  Stepper(const StepContext& in, double bucket_mb);

  [[nodiscard]] const Buckets* buckets() const override { return &buckets_; }
  [[nodiscard]] base::Array array() const override { return engine_.gradients(); }
  [[nodiscard]] std::size_t collectives() const override { return exchanges_ ? buckets_.count() : 0; }

 private:
  StepResult run(const data::Batch& batch, const StepOrder& order) override;
  /// `small`: where squares of this worker's small batches are added; null: they are not.
  engine::LossSums forward_and_backward(const data::Batch& batch, const StepOrder& order, double* small);
  /// Gradients in [0, ready) are final: records the time of every bucket that is now complete.
  void note_ready(std::int64_t ready);
  Votes agree(const engine::LossSums& local, const StepOrder& order);

  Buckets buckets_;
  const bool exchanges_;  ///< gradients are summed over workers
  BucketReducer reducer_;
  ShardSums shard_sums_;
  const SquaresSchedule squares_;
  std::size_t ready_buckets_ = 0;             ///< of this step
  double backward_before_s_ = 0;              ///< of this step's earlier shards
  base::TimePoint backward_begin_{};          ///< of this shard
  std::array<float, kVoteFloats> control_{};  ///< the votes in transfer
  std::unique_ptr<comm::Pending> control_pending_;
};

}  // namespace paceline::train

// Batch norm with the residual sum and the ReLU after it.
//
// If statistics are shared over workers or shards, the sums of each pass are copied to the host, which adds
// shards in the tree's order and workers through CompileOptions::reduce_statistics, and back. This waits for
// the device once for each batch norm and pass. A frozen batch norm shares none.

#include <algorithm>

#include "base/summation_tree.h"
#include "engine/cuda/kernels/batch_norm.h"
#include "engine/cuda/kernels/batch_norm_backward.h"
#include "engine/cuda/kernels/elementwise.h"
#include "engine/cuda/kernels/kernel.h"
#include "engine/cuda/ops/factories.h"
#include "engine/cuda/ops/shard_sum.h"

namespace paceline::engine::cuda {
namespace {

class BatchNormOp final : public KernelOp, private BatchNormBase {
 public:
  explicit BatchNormOp(const OpArguments& a)
      : KernelOp(a),
        BatchNormBase(a.build, src_.pixels()),
        residual_(a.group.sum ? a.src[1] : nullptr),
        relu_(a.group.relu),
        channels_(src_.channels()),
        used_(src_.shape.channels),
        shard_sum_(shards_, channels_) {
    parameters_ = a.build.memory.kept(std::int64_t{3} * groups_ * channels_ * 4);
    statistics_ = a.build.memory.kept(std::int64_t{3} * groups_ * channels_ * 8);
    if (a.build.options.training && !dst_.gradient.empty() &&
        (residual_ != nullptr || dst_.gradient.size() > 1)) {
      const BufferId d_residual = a.group.sum ? a.d_src[1] : BufferId{};
      d_masked_ = d_residual ? d_residual : dst_.gradient.front();
    }
    const std::int64_t pair = std::int64_t{2} * channels_;
    const Columns columns = sums_columns();
    sums_at_ = whole_lines(pair * groups_ * columns.row_blocks * 8);
    coefficients_at_ = sums_at_ + whole_lines(pair * shards_ * 8);
    shard_sum_at_ = coefficients_at_ + whole_lines(pair * groups_ * 4);
    a.build.memory.scratch(shard_sum_at_ + shard_sum_.bytes());
    if (is_shared_) a.build.pinned_bytes = std::max(a.build.pinned_bytes, pair * shards_ * 8);
  }

  void forward(ExecContext& exec) override {
    exec.training && !is_frozen_ ? find_statistics(exec) : take_running_statistics(exec);
    const Columns columns =
        exec.training ? Columns::for_rows(rows_, groups_, channels_)
                      : Columns::for_rows(std::int64_t{1} * exec.options.batch * src_.pixels(), 1, channels_);
    with_storage(exec.options.precision, [&]<typename T>(T) {
      exec.launch(
          BatchNormApply<T>{.columns = columns,
                            .src = exec.memory.at<T>(src_.buffer),
                            .residual = residual_ != nullptr ? exec.memory.at<T>(residual_->buffer) : nullptr,
                            .dst = exec.memory.at<T>(dst_.buffer),
                            .parameters = parameters(exec),
                            .relu = relu_});
    });
  }

  void backward(ExecContext& exec) override {
    if (dst_.gradient.empty()) {  // frozen, and so is everything before it
      for (const std::int64_t at : {weight_at_, bias_at_, mean_at_, var_at_}) exec.clear_gradient(at, used_);
      return;
    }
    const std::vector<BufferId> terms = first_terms(exec);
    with_storage(exec.options.precision, [&]<typename T>(T) {
      const MaskedGradient<T> gradient = masked_gradient<T>(exec, terms);
      is_shared_ ? reduce_shared(exec, gradient) : reduce_own(exec, gradient);
      if (!d_src_) return;
      if (d_masked_)
        apply<ReluMask::none, T>(exec, {.src = gradient.src,
                                        .dst = nullptr,
                                        .d_dst = exec.memory.at<T>(d_masked_),
                                        .d_dst2 = nullptr,
                                        .mask = ReluMask::none,
                                        .parameters = gradient.parameters});
      else
        relu_ ? apply<ReluMask::from_src>(exec, gradient) : apply<ReluMask::none>(exec, gradient);
    });
  }

  [[nodiscard]] std::string needs_host() const override {
    return is_shared_ && !is_frozen_ ? name_ + " sums its statistics on the host" : std::string();
  }

 private:
  using ParameterArrays = ShardSum<4>::Arrays;  ///< of weight, bias, running mean and variance

  // ---- where things lie

  [[nodiscard]] BatchNormParameters parameters(const ExecContext& exec) const {
    return {.values = exec.memory.at<float>(parameters_)};
  }
  [[nodiscard]] double* partial(const ExecContext& exec) const {
    return reinterpret_cast<double*>(exec.memory.scratch);
  }
  /// [shards][2][channels]
  [[nodiscard]] double* sums(const ExecContext& exec) const {
    return reinterpret_cast<double*>(exec.memory.scratch + sums_at_);
  }
  [[nodiscard]] float* coefficients(const ExecContext& exec) const {
    return reinterpret_cast<float*>(exec.memory.scratch + coefficients_at_);
  }
  /// The rows of all groups, or of one shard: the order of a shard's additions must not depend on the number
  /// of shards.
  [[nodiscard]] Columns sums_columns() const {
    return shards_ > 1 ? Columns::for_sums(rows_ / shards_, 1, channels_)
                       : Columns::for_sums(rows_, groups_, channels_);
  }
  /// The partial sums that the statistics and gradient kernels read: of all groups, or none if `sums` holds
  /// the sums.
  [[nodiscard]] ColumnFold<2> fold(const ExecContext& exec, bool has_partial) const {
    return {.partial = has_partial ? partial(exec) : nullptr,
            .groups = shards_ > 1 ? 1 : groups_,
            .parts = sums_columns().row_blocks,
            .channels = channels_};
  }

  // ---- shared statistics

  /// Computes the sums of each shard. take(shard) must compute partial sums.
  template <typename Take>
  void sum_shards(const ExecContext& exec, const Take& take) const {
    for (int shard = 0; shard < shards_; ++shard) {
      take(shard);
      exec.launch(
          SumFold{.fold = fold(exec, true), .sums = sums(exec) + std::int64_t{2} * channels_ * shard});
    }
  }
  /// Adds the sums of all shards of all workers, into those of the first shard.
  void join_shards(const ExecContext& exec) const {
    const auto count = static_cast<std::size_t>(2 * channels_);
    exec.runtime.copy_to_host(exec.compute, exec.pinned, sums(exec),
                              count * static_cast<std::size_t>(shards_) * sizeof(double));
    exec.runtime.synchronize(exec.compute);
    base::join_as_tree(shards_, [&](int into, int from) {
      for (std::size_t i = 0; i < count; ++i)
        exec.pinned[static_cast<std::size_t>(into) * count + i] +=
            exec.pinned[static_cast<std::size_t>(from) * count + i];
    });
    if (exec.options.reduce_statistics) exec.options.reduce_statistics({exec.pinned, count});
    exec.runtime.copy_to_device(exec.compute, sums(exec), exec.pinned, count * sizeof(double));
  }

  // ---- forward

  void find_statistics(const ExecContext& exec) const {
    const auto take = [&](int shard) {
      with_storage(exec.options.precision, [&]<typename T>(T) {
        exec.launch(BatchNormSums<T>{.columns = sums_columns(),
                                     .src = exec.memory.at<T>(src_.buffer) + first_of_shard(shard),
                                     .partial = partial(exec)});
      });
    };
    if (is_shared_) {
      sum_shards(exec, take);
      join_shards(exec);
    } else {
      take(0);
    }
    exec.launch(BatchNormStatistics{.fold = fold(exec, !is_shared_),
                                    .sums = sums(exec),
                                    .used = used_,
                                    .count = count_,
                                    .epsilon = epsilon_,
                                    .weight = exec.weights + weight_at_,
                                    .bias = exec.weights + bias_at_,
                                    .parameters = exec.memory.at<float>(parameters_),
                                    .statistics = exec.memory.at<double>(statistics_)});
  }

  void take_running_statistics(const ExecContext& exec) const {
    exec.launch(BatchNormRunning{.channels = channels_,
                                 .used = used_,
                                 .epsilon = epsilon_,
                                 .weight = exec.weights + weight_at_,
                                 .bias = exec.weights + bias_at_,
                                 .running_mean = exec.weights + mean_at_,
                                 .running_var = exec.weights + var_at_,
                                 .parameters = exec.memory.at<float>(parameters_),
                                 .statistics = is_frozen_ ? exec.memory.at<double>(statistics_) : nullptr});
  }

  [[nodiscard]] std::int64_t first_of_shard(int shard) const { return shard * (rows_ / shards_) * channels_; }

  // ---- backward

  /// Adds the third and later gradient terms to the first, and returns the remaining ones, at most two.
  [[nodiscard]] std::vector<BufferId> first_terms(const ExecContext& exec) const {
    std::vector<BufferId> terms = dst_.gradient;
    for (; terms.size() > 2; terms.pop_back()) {
      Value rest = dst_;
      rest.gradient = {terms.front(), terms.back()};
      merged_gradient(exec, rest);
    }
    return terms;
  }

  template <typename T>
  [[nodiscard]] MaskedGradient<T> masked_gradient(const ExecContext& exec,
                                                  const std::vector<BufferId>& terms) const {
    const ReluMask mask = !relu_                 ? ReluMask::none
                          : residual_ != nullptr ? ReluMask::from_dst
                                                 : ReluMask::from_src;
    return {.src = exec.memory.at<T>(src_.buffer),
            .dst = mask == ReluMask::from_dst ? exec.memory.at<T>(dst_.buffer) : nullptr,
            .d_dst = exec.memory.at<T>(terms[0]),
            .d_dst2 = terms.size() > 1 ? exec.memory.at<T>(terms[1]) : nullptr,
            .mask = mask,
            .parameters = parameters(exec)};
  }

  template <typename T>
  void take_gradient_sums(const ExecContext& exec, MaskedGradient<T> gradient, int shard) const {
    T* masked = exec.memory.at<T>(d_masked_);
    const auto move = [&](auto*& pointer) {
      if (pointer != nullptr) pointer += first_of_shard(shard);
    };
    move(gradient.src), move(gradient.dst), move(gradient.d_dst), move(gradient.d_dst2), move(masked);
    with_ways_of(gradient, masked != nullptr, [&]<ReluMask kMask, bool kTwoTerms, bool kStores>() {
      exec.launch(BatchNormGradientSums<T, kMask, kTwoTerms, kStores>{
          .columns = sums_columns(), .gradient = gradient, .d_masked = masked, .partial = partial(exec)});
    });
  }

  template <ReluMask kMask, typename T>
  void apply(const ExecContext& exec, const MaskedGradient<T>& gradient) const {
    exec.launch(BatchNormGradientApply<T, kMask>{.columns = Columns::for_rows(rows_, groups_, channels_),
                                                 .gradient = gradient,
                                                 .coefficients = coefficients(exec),
                                                 .d_src = exec.memory.at<T>(d_src_)});
  }

  /// The gradients of weight, bias and running statistics in the flat array.
  [[nodiscard]] ParameterArrays gradients(const ExecContext& exec) const {
    return {exec.gradients + weight_at_, exec.gradients + bias_at_, exec.gradients + mean_at_,
            exec.gradients + var_at_};
  }
  /// `to` and `coefficients`: the addresses of the results; null: not wanted.
  void launch_gradients(const ExecContext& exec, bool has_partial, const double* sums,
                        const ParameterArrays& to, float* coefficients) const {
    exec.launch(BatchNormGradients{.fold = fold(exec, has_partial),
                                   .sums = sums,
                                   .used = used_,
                                   .count = count_,
                                   .statistics = exec.memory.at<double>(statistics_),
                                   .weight = exec.weights + weight_at_,
                                   .step = exec.numbers,
                                   .batch = is_frozen_ ? 0 : exec.options.batch / shards_,
                                   .d_weight = to[0],
                                   .d_bias = to[1],
                                   .d_running_mean = to[2],
                                   .d_running_var = to[3],
                                   .coefficients = coefficients});
  }

  template <typename T>
  void reduce_own(const ExecContext& exec, const MaskedGradient<T>& gradient) const {
    take_gradient_sums(exec, gradient, 0);
    launch_gradients(exec, true, nullptr, gradients(exec), d_src_ ? coefficients(exec) : nullptr);
  }

  template <typename T>
  void reduce_shared(const ExecContext& exec, const MaskedGradient<T>& gradient) const {
    sum_shards(exec, [&](int shard) { take_gradient_sums(exec, gradient, shard); });
    // Each shard's gradients are rounded to float before they are added, like those of a worker with only
    // this shard.
    shard_sum_.run(
        exec, exec.memory.scratch + shard_sum_at_, gradients(exec), used_, [&](int shard, const auto& to) {
          launch_gradients(exec, false, sums(exec) + std::int64_t{2} * channels_ * shard, to, nullptr);
        });
    if (!is_frozen_) join_shards(exec);
    if (!d_src_) return;  // every worker takes part in the reduction above, even if it needs no d_src
    launch_gradients(exec, false, sums(exec), {}, coefficients(exec));
  }

  const Value* residual_;
  const bool relu_;
  const int channels_, used_;  ///< with padding and without
  const ShardSum<4> shard_sum_;
  BufferId parameters_, statistics_;
  BufferId d_masked_;  ///< the masked gradient between the two kernels; none: not stored
  std::int64_t sums_at_ = 0, coefficients_at_ = 0, shard_sum_at_ = 0;  ///< in the scratch space
};

}  // namespace

std::unique_ptr<CompiledOp> make_op(const graph::BatchNorm&, const OpArguments& a) {
  return std::make_unique<BatchNormOp>(a);
}

}  // namespace paceline::engine::cuda

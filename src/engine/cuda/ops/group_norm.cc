// Compiled group norm: the kernels of batch norm, whose groups of rows are the samples.

#include "engine/cuda/kernels/group_norm.h"

#include "engine/cuda/kernels/batch_norm.h"
#include "engine/cuda/kernels/batch_norm_backward.h"
#include "engine/cuda/ops/factories.h"
#include "engine/cuda/ops/shard_sum.h"

namespace paceline::engine::cuda {
namespace {

class GroupNormOp final : public KernelOp {
 public:
  explicit GroupNormOp(const OpArguments& a)
      : KernelOp(a),
        batch_(a.build.options.batch),
        groups_(a.build.op().as<graph::GroupNorm>()->groups),
        epsilon_(a.build.op().as<graph::GroupNorm>()->epsilon),
        learns_(a.build.learns()),
        weight_at_(a.build.parameter(0)),
        bias_at_(a.build.parameter(1)),
        shards_(a.build.shards()),
        sums_(Columns::for_sums(src_.pixels(), batch_, src_.channels())),
        shard_sum_(shards_, src_.channels()) {
    const std::int64_t of_samples = std::int64_t{1} * batch_ * src_.channels();
    const int until =
        a.build.options.training && !dst_.gradient.empty() ? a.build.backward_at : a.build.forward_at;
    parameters_ = a.build.memory.live(12 * of_samples, a.build.forward_at, until);
    statistics_ = a.build.memory.live(std::int64_t{16} * batch_ * groups_, a.build.forward_at, until);
    coefficients_at_ = whole_lines(16 * of_samples * sums_.row_blocks);
    shard_sum_at_ = coefficients_at_ + whole_lines(d_src_ ? 8 * of_samples : 0);
    a.build.memory.scratch(shard_sum_at_ + (learns_ ? shard_sum_.bytes() : 0));
  }

  void forward(ExecContext& exec) override {
    with_storage(exec.options.precision, [&]<typename T>(T) {
      exec.launch(BatchNormSums<T>{
          .columns = sums_, .src = exec.memory.at<T>(src_.buffer), .partial = partial(exec)});
      exec.launch(GroupNormStatistics{.shape = shape(batch_),
                                      .partial = partial(exec),
                                      .epsilon = epsilon_,
                                      .weight = exec.weights + weight_at_,
                                      .bias = exec.weights + bias_at_,
                                      .parameters = exec.memory.at<float>(parameters_),
                                      .statistics = exec.memory.at<double>(statistics_)});
      exec.launch(BatchNormApply<T>{.columns = rows(),
                                    .src = exec.memory.at<T>(src_.buffer),
                                    .residual = nullptr,
                                    .dst = exec.memory.at<T>(dst_.buffer),
                                    .parameters = {exec.memory.at<float>(parameters_)},
                                    .relu = false});
    });
  }

  void backward(ExecContext& exec) override {
    if (!learns_)
      for (const std::int64_t at : {weight_at_, bias_at_}) exec.clear_gradient(at, src_.shape.channels);
    if (!learns_ && !d_src_) return;  // frozen, and so is everything before it
    void* const d_dst = merged_gradient(exec, dst_);
    with_storage(exec.options.precision, [&]<typename T>(T) {
      const MaskedGradient<T> gradient{.src = exec.memory.at<T>(src_.buffer),
                                       .dst = nullptr,
                                       .d_dst = static_cast<const T*>(d_dst),
                                       .d_dst2 = nullptr,
                                       .mask = ReluMask::none,
                                       .parameters = {exec.memory.at<float>(parameters_)}};
      exec.launch(BatchNormGradientSums<T, ReluMask::none, false, false>{
          .columns = sums_, .gradient = gradient, .d_masked = nullptr, .partial = partial(exec)});
      if (learns_) sum_gradients(exec);
      if (!d_src_) return;
      auto* const coefficients = reinterpret_cast<float*>(exec.memory.scratch + coefficients_at_);
      exec.launch(GroupNormCoefficients{.shape = shape(batch_),
                                        .partial = partial(exec),
                                        .weight = exec.weights + weight_at_,
                                        .statistics = exec.memory.at<double>(statistics_),
                                        .coefficients = coefficients});
      exec.launch(BatchNormGradientApply<T, ReluMask::none>{.columns = rows(),
                                                            .gradient = gradient,
                                                            .coefficients = coefficients,
                                                            .d_src = exec.memory.at<T>(d_src_)});
    });
  }

 private:
  [[nodiscard]] Columns rows() const { return Columns::for_rows(src_.pixels(), batch_, src_.channels()); }
  [[nodiscard]] double* partial(const ExecContext& exec) const {
    return reinterpret_cast<double*>(exec.memory.scratch);
  }
  [[nodiscard]] GroupNormShape shape(int samples) const {
    return {.samples = samples,
            .groups = groups_,
            .parts = sums_.row_blocks,
            .channels = src_.channels(),
            .used = src_.shape.channels,
            .pixels = src_.pixels()};
  }

  void sum_gradients(const ExecContext& exec) const {
    const int samples = batch_ / shards_;
    shard_sum_.run(exec, exec.memory.scratch + shard_sum_at_,
                   {exec.gradients + weight_at_, exec.gradients + bias_at_}, src_.shape.channels,
                   [&](int shard, const auto& to) {
                     const std::int64_t first = std::int64_t{1} * shard * samples;
                     exec.launch(GroupNormGradients{
                         .shape = shape(samples),
                         .partial = partial(exec) + first * sums_.row_blocks * 2 * src_.channels(),
                         .statistics = exec.memory.at<double>(statistics_) + first * groups_ * 2,
                         .d_bias = to[1],
                         .d_weight = to[0]});
                   });
  }

  const int batch_, groups_;
  const double epsilon_;
  const bool learns_;
  const std::int64_t weight_at_, bias_at_;
  const int shards_;
  const Columns sums_;  ///< a group for each sample
  const ShardSum<2> shard_sum_;
  BufferId parameters_, statistics_;
  std::int64_t coefficients_at_ = 0, shard_sum_at_ = 0;  ///< in the scratch area, behind the partial sums
};

}  // namespace

std::unique_ptr<CompiledOp> make_op(const graph::GroupNorm&, const OpArguments& a) {
  return std::make_unique<GroupNormOp>(a);
}

}  // namespace paceline::engine::cuda

// Compiled layer norm, and learned factors of the channels.

#include "engine/cuda/kernels/layer_norm.h"

#include "engine/cuda/ops/factories.h"
#include "engine/cuda/ops/shard_sum.h"

namespace paceline::engine::cuda {
namespace {

/// What both share: rows, and the gradients of their parameters.
class RowOp : public KernelOp {
 public:
  RowOp(const OpArguments& a, std::int64_t bias_at)
      : KernelOp(a),
        rows_(std::int64_t{1} * a.build.options.batch * src_.pixels()),
        used_(src_.shape.channels),
        learns_(a.build.learns()),
        weight_at_(a.build.parameter(0)),
        bias_at_(bias_at),
        shards_(a.build.shards()),
        columns_(Columns::for_sums(rows_ / shards_, 1, src_.channels())),
        shard_sum_(shards_, src_.channels()) {
    if (!learns_) return;
    shard_sum_at_ = whole_lines(std::int64_t{16} * columns_.row_blocks * src_.channels());
    a.build.memory.scratch(shard_sum_at_ + shard_sum_.bytes());
  }

 protected:
  [[nodiscard]] RowThreads row_threads() const { return {.rows = rows_, .channels = src_.channels()}; }

  void clear_gradients(const ExecContext& exec) const {
    for (const std::int64_t at : {weight_at_, bias_at_}) exec.clear_gradient(at, used_);
  }

  template <typename T>
  void scale(const ExecContext& exec, const T* src, T* dst) const {
    exec.launch(ScaleChannels<T>{.columns = Columns::for_rows(rows_, 1, src_.channels()),
                                 .used = used_,
                                 .src = src,
                                 .dst = dst,
                                 .weight = exec.weights + weight_at_});
  }

  /// Enqueues the gradients of the parameters.
  template <typename T>
  void sum_gradients(const ExecContext& exec, const T* d_dst, const float* statistics) const {
    auto* const partial = reinterpret_cast<double*>(exec.memory.scratch);
    const auto sum_shard = [&](int shard, const auto& to) {
      const std::int64_t first = shard * (rows_ / shards_);
      exec.launch(RowGradientSums<T>{.columns = columns_,
                                     .src = exec.memory.at<T>(src_.buffer) + first * src_.channels(),
                                     .d_dst = d_dst + first * src_.channels(),
                                     .statistics = statistics == nullptr ? nullptr : statistics + 2 * first,
                                     .partial = partial});
      exec.launch(RowGradients{.fold = {.partial = partial,
                                        .groups = 1,
                                        .parts = columns_.row_blocks,
                                        .channels = src_.channels()},
                               .used = used_,
                               .d_bias = to[1],
                               .d_weight = to[0]});
    };
    float* const d_bias = bias_at_ >= 0 ? exec.gradients + bias_at_ : nullptr;
    shard_sum_.run(exec, exec.memory.scratch + shard_sum_at_, {exec.gradients + weight_at_, d_bias}, used_,
                   sum_shard);
  }

  const std::int64_t rows_;
  const int used_;
  const bool learns_;
  const std::int64_t weight_at_, bias_at_;  ///< in the flat arrays; -1: no bias
  const int shards_;
  const Columns columns_;  ///< of a shard's rows
  const ShardSum<2> shard_sum_;
  std::int64_t shard_sum_at_ = 0;  ///< in the scratch area
};

class LayerNormOp final : public RowOp {
 public:
  explicit LayerNormOp(const OpArguments& a)
      : RowOp(a, a.build.parameter(1)),
        epsilon_(static_cast<float>(a.build.op().as<graph::LayerNorm>()->epsilon)) {
    if (a.build.options.training && !dst_.gradient.empty())
      statistics_ = a.build.memory.live(8 * rows_, a.build.forward_at, a.build.backward_at);
  }

  void forward(ExecContext& exec) override {
    with_storage(exec.options.precision, [&]<typename T>(T) {
      exec.launch(LayerNormForward<T>{.rows = row_threads(),
                                      .used = used_,
                                      .src = exec.memory.at<T>(src_.buffer),
                                      .dst = exec.memory.at<T>(dst_.buffer),
                                      .weight = exec.weights + weight_at_,
                                      .bias = exec.weights + bias_at_,
                                      .epsilon = epsilon_,
                                      .statistics = exec.training ? statistics(exec) : nullptr});
    });
  }

  void backward(ExecContext& exec) override {
    if (!learns_) clear_gradients(exec);
    if (!learns_ && !d_src_) return;  // frozen, and so is everything before it
    void* const d_dst = merged_gradient(exec, dst_);
    with_storage(exec.options.precision, [&]<typename T>(T) {
      if (learns_) sum_gradients(exec, static_cast<const T*>(d_dst), statistics(exec));
      if (d_src_)
        exec.launch(LayerNormGradient<T>{.rows = row_threads(),
                                         .used = used_,
                                         .src = exec.memory.at<T>(src_.buffer),
                                         .d_dst = static_cast<const T*>(d_dst),
                                         .d_src = exec.memory.at<T>(d_src_),
                                         .weight = exec.weights + weight_at_,
                                         .statistics = statistics(exec)});
    });
  }

 private:
  [[nodiscard]] float* statistics(const ExecContext& exec) const {
    return exec.memory.at<float>(statistics_);
  }

  const float epsilon_;
  BufferId statistics_;  ///< [rows][2]
};

class ScaleOp final : public RowOp {
 public:
  explicit ScaleOp(const OpArguments& a) : RowOp(a, -1) {}

  void forward(ExecContext& exec) override {
    with_storage(exec.options.precision, [&]<typename T>(T) {
      scale(exec, exec.memory.at<const T>(src_.buffer), exec.memory.at<T>(dst_.buffer));
    });
  }

  void backward(ExecContext& exec) override {
    if (!learns_) clear_gradients(exec);
    if (!learns_ && !d_src_) return;
    void* const d_dst = merged_gradient(exec, dst_);
    with_storage(exec.options.precision, [&]<typename T>(T) {
      if (learns_) sum_gradients(exec, static_cast<const T*>(d_dst), nullptr);
      if (d_src_) scale(exec, static_cast<const T*>(d_dst), exec.memory.at<T>(d_src_));
    });
  }
};

}  // namespace

std::unique_ptr<CompiledOp> make_op(const graph::LayerNorm&, const OpArguments& a) {
  return std::make_unique<LayerNormOp>(a);
}
std::unique_ptr<CompiledOp> make_op(const graph::Scale&, const OpArguments& a) {
  return std::make_unique<ScaleOp>(a);
}

}  // namespace paceline::engine::cuda

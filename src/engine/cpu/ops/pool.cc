// Max, average, adaptive average and global average pooling.

#include "base/error.h"
#include "engine/cpu/ops/factories.h"
#include "engine/cpu/parallel.h"
#include "graph/ops.h"

namespace paceline::engine::cpu {
namespace {

PoolShape pool_shape(const graph::Node& op, const Value& src, const Value& dst) {
  PoolShape shape{.channels = src.shape.channels,
                  .rows = {.size = src.shape.height, .positions = dst.shape.height, .kernel = 0},
                  .columns = {.size = src.shape.width, .positions = dst.shape.width, .kernel = 0},
                  .count_padding = false};
  const auto slide = [&](const auto& pool) {
    shape.rows.kernel = pool.kernel.height, shape.columns.kernel = pool.kernel.width;
    shape.rows.stride = pool.stride.height, shape.columns.stride = pool.stride.width;
    shape.rows.padding = pool.padding.height, shape.columns.padding = pool.padding.width;
  };
  if (const auto* max = op.as<graph::MaxPool>()) slide(*max);
  if (const auto* average = op.as<graph::AveragePool>()) {
    slide(*average);
    shape.count_padding = average->count_padding;
  }
  return shape;
}

/// Calls work(rows) on all threads for parts of the rows of `value`.
template <typename Work>
void over_rows(const ExecContext& exec, const Value& value, const Work& work) {
  parallel_ranges(exec.pool, std::int64_t{1} * exec.options.batch * value.shape.height,
                  least_of(std::int64_t{1} * value.shape.width * value.shape.channels),
                  [&](int, Range rows) { work(rows); });
}

class MaxPoolOp final : public OwnKernelOp {
 public:
  explicit MaxPoolOp(const OpArguments& a) : OwnKernelOp(a), shape_(pool_shape(a.build.op(), src_, dst_)) {
    if (taps() > kMostTaps)
      base::fail(
          base::ErrorKind::usage,
          "max pool '{}': the kernel must have at most 256 pixels, 16 x 16, on the cpu engine, but is {}; use a "
          "smaller one or global pooling",
          name_, graph::text(graph::Pair(shape_.rows.kernel, shape_.columns.kernel)));
    if (d_src_)
      winner_ = a.build.memory.live(a.build.options.batch * dst_.shape.elements(), a.build.forward_at,
                                    a.build.backward_at);
  }
  void forward(ExecContext& exec) override {
    over_rows(exec, dst_, [&](Range part) {
      exec.typed(src_.storage)
          .max_pool(exec.memory.at(src_.buffer), exec.memory.at(dst_.buffer),
                    exec.training ? exec.memory.at<std::uint8_t>(winner_) : nullptr,
                    src_.gradient_comes_masked, shape_, part.begin, part.end);
    });
  }
  void backward(ExecContext& exec) override {
    if (!d_src_) return;
    const void* d_dst = merged_gradient(exec, dst_);
    over_rows(exec, src_, [&](Range part) {
      exec.typed(dst_.gradient_storage)
          .max_pool_backward(d_dst, exec.memory.at<std::uint8_t>(winner_), exec.memory.at(d_src_), shape_,
                             part.begin, part.end);
    });
  }
  /// Windows whose best is not positive have no winner.
  [[nodiscard]] Masking masking() const override {
    return taps() <= kNoWinner ? Masking::on_the_way : Masking::none;
  }

 private:
  static constexpr int kMostTaps = 256;  // so that a tap's number fits one byte
  [[nodiscard]] std::int64_t taps() const { return std::int64_t{shape_.rows.kernel} * shape_.columns.kernel; }
  const PoolShape shape_;
  BufferId winner_;
};

/// Masks rows of d_src that were just written, if a ReLU before the pool requires it.
void mask_rows(const ExecContext& exec, const Value& src, BufferId d_src, Range rows) {
  if (!src.gradient_comes_masked) return;
  const std::int64_t row = std::int64_t{1} * src.shape.width * src.shape.channels;
  mask_by_relu(exec, src, d_src, rows.begin * row, rows.size() * row);
}

class AveragePoolOp final : public OwnKernelOp {
 public:
  explicit AveragePoolOp(const OpArguments& a)
      : OwnKernelOp(a), shape_(pool_shape(a.build.op(), src_, dst_)) {}
  void forward(ExecContext& exec) override {
    over_rows(exec, dst_, [&](Range part) {
      exec.typed(src_.storage)
          .average_pool(exec.memory.at(src_.buffer), exec.memory.at(dst_.buffer), shape_, part.begin,
                        part.end);
    });
  }
  void backward(ExecContext& exec) override {
    if (!d_src_) return;
    const void* d_dst = merged_gradient(exec, dst_);
    over_rows(exec, src_, [&](Range part) {
      exec.typed(dst_.gradient_storage)
          .average_pool_backward(d_dst, exec.memory.at(d_src_), shape_, part.begin, part.end);
      mask_rows(exec, src_, d_src_, part);
    });
  }
  [[nodiscard]] Masking masking() const override { return Masking::by_value; }

 private:
  const PoolShape shape_;
};

class GlobalAveragePoolOp final : public OwnKernelOp {
 public:
  using OwnKernelOp::OwnKernelOp;
  void forward(ExecContext& exec) override {
    parallel_ranges(exec.pool, exec.options.batch, least_of(src_.shape.elements()), [&](int, Range part) {
      exec.typed(src_.storage)
          .global_pool(exec.memory.at(src_.buffer), exec.memory.at(dst_.buffer), src_.pixels(),
                       src_.shape.channels, part.begin, part.end);
    });
  }
  void backward(ExecContext& exec) override {
    if (!d_src_) return;
    const void* d_dst = merged_gradient(exec, dst_);
    parallel_ranges(exec.pool, exec.options.batch, least_of(src_.shape.elements()), [&](int, Range part) {
      exec.typed(dst_.gradient_storage)
          .global_pool_backward(d_dst, exec.memory.at(d_src_), src_.pixels(), src_.shape.channels, part.begin,
                                part.end);
      if (src_.gradient_comes_masked)
        mask_by_relu(exec, src_, d_src_, part.begin * src_.shape.elements(),
                     part.size() * src_.shape.elements());
    });
  }
  [[nodiscard]] Masking masking() const override { return Masking::by_value; }
};

}  // namespace

std::unique_ptr<CompiledOp> make_op(const graph::MaxPool&, const OpArguments& a) {
  return std::make_unique<MaxPoolOp>(a);
}
std::unique_ptr<CompiledOp> make_op(const graph::AveragePool&, const OpArguments& a) {
  return std::make_unique<AveragePoolOp>(a);
}
std::unique_ptr<CompiledOp> make_op(const graph::AdaptiveAveragePool&, const OpArguments& a) {
  return std::make_unique<AveragePoolOp>(a);
}
std::unique_ptr<CompiledOp> make_op(const graph::GlobalAveragePool&, const OpArguments& a) {
  return std::make_unique<GlobalAveragePoolOp>(a);
}

}  // namespace paceline::engine::cpu

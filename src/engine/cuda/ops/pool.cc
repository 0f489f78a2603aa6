// Max, average, adaptive average and global average pooling.

#include "engine/cuda/kernels/pool.h"

#include "base/error.h"
#include "engine/cuda/ops/factories.h"
#include "graph/ops.h"

namespace paceline::engine::cuda {
namespace {

PoolShape pool_shape(const OpArguments& a, graph::Pair kernel = 0, graph::Pair stride = 1,
                     graph::Pair padding = 0, bool count_padding = false) {
  const Value& src = *a.src[0];
  return {.samples = a.build.options.batch,
          .channels = src.channels(),
          .rows = {src.shape.height, a.dst.shape.height, kernel.height, stride.height, padding.height},
          .columns = {src.shape.width, a.dst.shape.width, kernel.width, stride.width, padding.width},
          .count_padding = count_padding};
}

class MaxPoolOp final : public KernelOp {
 public:
  MaxPoolOp(const graph::MaxPool& pool, const OpArguments& a)
      : KernelOp(a), shape_(pool_shape(a, pool.kernel, pool.stride, pool.padding)) {
    constexpr std::int64_t kMostPixels = 65535;  // so that a position in the window fits 16 bits
    if (pool.kernel.product() > kMostPixels)
      base::fail(base::ErrorKind::usage,
                 "max pool '{}': the kernel must have at most {} pixels on the cuda engine, but is {}; use a "
                 "smaller one or global pooling",
                 name_, kMostPixels, text(pool.kernel));
    if (d_src_)
      winner_ = a.build.memory.live(std::int64_t{2} * a.build.options.batch * dst_.elements(),
                                    a.build.forward_at, a.build.backward_at);
  }
  void forward(ExecContext& exec) override {
    with_storage(exec.options.precision, [&]<typename T>(T) {
      exec.launch(
          MaxPoolForward<T>{.shape = shape_,
                            .src = exec.memory.at<T>(src_.buffer),
                            .dst = exec.memory.at<T>(dst_.buffer),
                            .winner = exec.training ? exec.memory.at<std::uint16_t>(winner_) : nullptr});
    });
  }
  void backward(ExecContext& exec) override {
    if (!d_src_) return;
    const void* d_dst = merged_gradient(exec, dst_);
    with_storage(exec.options.precision, [&]<typename T>(T) {
      exec.launch(MaxPoolBackward<T>{.shape = shape_,
                                     .winner = exec.memory.at<std::uint16_t>(winner_),
                                     .d_dst = static_cast<const T*>(d_dst),
                                     .d_src = exec.memory.at<T>(d_src_)});
    });
  }

 private:
  const PoolShape shape_;
  BufferId winner_;  ///< live from forward to backward
};

class AveragePoolOp final : public KernelOp {
 public:
  AveragePoolOp(const PoolShape& shape, const OpArguments& a) : KernelOp(a), shape_(shape) {}
  void forward(ExecContext& exec) override {
    with_storage(exec.options.precision, [&]<typename T>(T) {
      exec.launch(AveragePoolForward<T>{
          .shape = shape_, .src = exec.memory.at<T>(src_.buffer), .dst = exec.memory.at<T>(dst_.buffer)});
    });
  }
  void backward(ExecContext& exec) override {
    if (!d_src_) return;
    const void* d_dst = merged_gradient(exec, dst_);
    with_storage(exec.options.precision, [&]<typename T>(T) {
      exec.launch(AveragePoolBackward<T>{
          .shape = shape_, .d_dst = static_cast<const T*>(d_dst), .d_src = exec.memory.at<T>(d_src_)});
    });
  }

 private:
  const PoolShape shape_;
};

class GlobalAveragePoolOp final : public KernelOp {
 public:
  using KernelOp::KernelOp;
  void forward(ExecContext& exec) override {
    with_storage(exec.options.precision, [&]<typename T>(T) {
      exec.launch(GlobalAveragePoolForward<T>{.samples = exec.options.batch,
                                              .channels = src_.channels(),
                                              .pixels = src_.pixels(),
                                              .src = exec.memory.at<T>(src_.buffer),
                                              .dst = exec.memory.at<T>(dst_.buffer)});
    });
  }
  void backward(ExecContext& exec) override {
    if (!d_src_) return;
    const void* d_dst = merged_gradient(exec, dst_);
    with_storage(exec.options.precision, [&]<typename T>(T) {
      exec.launch(GlobalAveragePoolBackward<T>{.samples = exec.options.batch,
                                               .channels = src_.channels(),
                                               .pixels = src_.pixels(),
                                               .d_dst = static_cast<const T*>(d_dst),
                                               .d_src = exec.memory.at<T>(d_src_)});
    });
  }
};

}  // namespace

std::unique_ptr<CompiledOp> make_op(const graph::MaxPool& op, const OpArguments& a) {
  return std::make_unique<MaxPoolOp>(op, a);
}
std::unique_ptr<CompiledOp> make_op(const graph::AveragePool& op, const OpArguments& a) {
  return std::make_unique<AveragePoolOp>(pool_shape(a, op.kernel, op.stride, op.padding, op.count_padding),
                                         a);
}
std::unique_ptr<CompiledOp> make_op(const graph::AdaptiveAveragePool&, const OpArguments& a) {
  return std::make_unique<AveragePoolOp>(pool_shape(a), a);
}
std::unique_ptr<CompiledOp> make_op(const graph::GlobalAveragePool&, const OpArguments& a) {
  return std::make_unique<GlobalAveragePoolOp>(a);
}

}  // namespace paceline::engine::cuda

// Max, average and global average pooling.

#include "engine/cuda/kernels/pool.h"

#include "base/error.h"
#include "engine/cuda/ops/factories.h"

namespace paceline::engine::cuda {
namespace {

template <typename Pool>
PoolShape pool_shape(const Pool& pool, const OpArguments& a) {
  const Value& src = *a.src[0];
  return {.samples = a.build.options.batch,
          .channels = src.channels(),
          .height = src.shape.height,
          .width = src.shape.width,
          .dst_height = a.dst.shape.height,
          .dst_width = a.dst.shape.width,
          .kernel = pool.kernel,
          .stride = pool.stride,
          .padding = pool.padding};
}

class MaxPoolOp final : public CompiledOp {
 public:
  MaxPoolOp(const graph::MaxPool& pool, const OpArguments& a)
      : name_(a.build.op().name),
        src_(*a.src[0]),
        dst_(a.dst),
        d_src_(a.d_src[0]),
        shape_(pool_shape(pool, a)) {
    constexpr int kLargestKernel = 255;  // so that a position in the window fits 16 bits
    if (pool.kernel > kLargestKernel)
      base::fail(base::ErrorKind::usage,
                 "max pool '{}': the kernel must be at most {} on the cuda engine, but is {}; use a smaller "
                 "one or global pooling",
                 name_, kLargestKernel, pool.kernel);
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
  void describe(std::vector<KernelChoice>& choices) const override { choices.push_back(own_kernel(name_)); }

 private:
  const std::string name_;
  const Value& src_;
  const Value& dst_;
  const BufferId d_src_;
  const PoolShape shape_;
  BufferId winner_;  ///< live from forward to backward
};

class AveragePoolOp final : public CompiledOp {
 public:
  AveragePoolOp(const graph::AveragePool& pool, const OpArguments& a)
      : name_(a.build.op().name),
        src_(*a.src[0]),
        dst_(a.dst),
        d_src_(a.d_src[0]),
        shape_(pool_shape(pool, a)) {}
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
  void describe(std::vector<KernelChoice>& choices) const override { choices.push_back(own_kernel(name_)); }

 private:
  const std::string name_;
  const Value& src_;
  const Value& dst_;
  const BufferId d_src_;
  const PoolShape shape_;
};

class GlobalAveragePoolOp final : public CompiledOp {
 public:
  explicit GlobalAveragePoolOp(const OpArguments& a)
      : name_(a.build.op().name), src_(*a.src[0]), dst_(a.dst), d_src_(a.d_src[0]) {}
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
  void describe(std::vector<KernelChoice>& choices) const override { choices.push_back(own_kernel(name_)); }

 private:
  const std::string name_;
  const Value& src_;
  const Value& dst_;
  const BufferId d_src_;
};

}  // namespace

std::unique_ptr<CompiledOp> make_op(const graph::MaxPool& op, const OpArguments& a) {
  return std::make_unique<MaxPoolOp>(op, a);
}
std::unique_ptr<CompiledOp> make_op(const graph::AveragePool& op, const OpArguments& a) {
  return std::make_unique<AveragePoolOp>(op, a);
}
std::unique_ptr<CompiledOp> make_op(const graph::GlobalAveragePool&, const OpArguments& a) {
  return std::make_unique<GlobalAveragePoolOp>(a);
}

}  // namespace paceline::engine::cuda

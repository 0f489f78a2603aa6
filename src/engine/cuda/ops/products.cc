// Compiled products of two values, and stochastic depth, which multiplies samples.

#include "engine/cuda/kernels/products.h"

#include "engine/cuda/ops/factories.h"
#include "engine/dropout_mask.h"

namespace paceline::engine::cuda {
namespace {

/// dst = src * factor, where one row of factors belongs to all pixels of a sample, or to one pixel.
class MulOp final : public CompiledOp {
 public:
  explicit MulOp(const OpArguments& a)
      : name_(a.build.op().name),
        src_(*a.src[0]),
        factor_(*a.src[1]),
        dst_(a.dst),
        d_src_(a.d_src[0]),
        d_factor_(a.d_src[1]) {}

  void forward(ExecContext& exec) override {
    scale(exec, exec.memory.at(src_.buffer), exec.memory.at(dst_.buffer));
  }
  void backward(ExecContext& exec) override {
    if (!d_src_ && !d_factor_) return;
    void* d_dst = merged_gradient(exec, dst_);
    if (d_factor_)
      with_storage(exec.options.precision, [&]<typename T>(T) {
        exec.launch(ScaleGradient<T>{.items = items(exec),
                                     .pixels = pixels(),
                                     .channels = src_.channels(),
                                     .src = exec.memory.at<T>(src_.buffer),
                                     .d_dst = static_cast<const T*>(d_dst),
                                     .d_factor = exec.memory.at<T>(d_factor_)});
      });
    if (d_src_) scale(exec, d_dst, exec.memory.at(d_src_));
  }
  void describe(std::vector<KernelChoice>& choices) const override { choices.push_back(own_kernel(name_)); }

 private:
  /// Rows of factors.
  [[nodiscard]] std::int64_t items(const ExecContext& exec) const {
    return std::int64_t{1} * exec.options.batch * factor_.pixels();
  }
  [[nodiscard]] int pixels() const { return src_.pixels() / factor_.pixels(); }
  void scale(const ExecContext& exec, const void* src, void* dst) const {
    with_storage(exec.options.precision, [&]<typename T>(T) {
      exec.launch(Scale<T>{.items = items(exec),
                           .pixels = pixels(),
                           .channels = src_.channels(),
                           .src = static_cast<const T*>(src),
                           .factor = exec.memory.at<T>(factor_.buffer),
                           .dst = static_cast<T*>(dst)});
    });
  }

  const std::string name_;
  const Value& src_;
  const Value& factor_;
  const Value& dst_;
  const BufferId d_src_, d_factor_;
};

/// The backward pass draws again, so nothing is stored.
class StochasticDepthOp final : public CompiledOp {
 public:
  StochasticDepthOp(const graph::StochasticDepth& op, const OpArguments& a)
      : name_(a.build.op().name),
        // The kernel adds step and position.
        mask_(a.build.options.seed, 0, 0, a.build.node, op.probability),
        src_(*a.src[0]),
        dst_(a.dst),
        d_src_(a.d_src[0]),
        scale_(static_cast<float>(1 / (1 - op.probability))) {}

  void forward(ExecContext& exec) override {
    if (exec.training)
      apply(exec, exec.memory.at(src_.buffer), exec.memory.at(dst_.buffer));
    else
      exec.runtime.copy_on_device(
          exec.compute, exec.memory.at(dst_.buffer), exec.memory.at(src_.buffer),
          static_cast<std::size_t>(exec.options.batch * src_.elements() * bytes_of(exec.options.precision)));
  }
  void backward(ExecContext& exec) override {
    if (d_src_) apply(exec, merged_gradient(exec, dst_), exec.memory.at(d_src_));
  }
  void describe(std::vector<KernelChoice>& choices) const override { choices.push_back(own_kernel(name_)); }

 private:
  void apply(const ExecContext& exec, const void* src, void* dst) const {
    with_storage(exec.options.precision, [&]<typename T>(T) {
      exec.launch(StochasticDepth<T>{.src = static_cast<const T*>(src),
                                     .dst = static_cast<T*>(dst),
                                     .step = exec.numbers,
                                     .samples = exec.options.batch,
                                     .vectors = src_.elements() / kVector,
                                     .key0 = mask_.key()[0],
                                     .key1 = mask_.key()[1],
                                     .threshold = mask_.threshold(),
                                     .scale = scale_});
    });
  }

  const std::string name_;
  const DropoutMask mask_;
  const Value& src_;
  const Value& dst_;
  const BufferId d_src_;
  const float scale_;
};

}  // namespace

std::unique_ptr<CompiledOp> make_op(const graph::Mul&, const OpArguments& a) {
  return std::make_unique<MulOp>(a);
}
std::unique_ptr<CompiledOp> make_op(const graph::StochasticDepth& op, const OpArguments& a) {
  return std::make_unique<StochasticDepthOp>(op, a);
}

}  // namespace paceline::engine::cuda

// The compiled product of two values.

#include "engine/cuda/kernels/products.h"

#include "engine/cuda/ops/factories.h"

namespace paceline::engine::cuda {
namespace {

/// dst = src * factor, where one row of factors belongs to all pixels of a sample, or to one pixel.
class MulOp final : public KernelOp {
 public:
  explicit MulOp(const OpArguments& a) : KernelOp(a), factor_(*a.src[1]), d_factor_(a.d_src[1]) {}

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

  const Value& factor_;
  const BufferId d_factor_;
};

}  // namespace

std::unique_ptr<CompiledOp> make_op(const graph::Mul&, const OpArguments& a) {
  return std::make_unique<MulOp>(a);
}

}  // namespace paceline::engine::cuda

// The compiled product of two values.

#include "engine/cpu/ops/factories.h"
#include "engine/cpu/parallel.h"

namespace paceline::engine::cpu {
namespace {

/// dst = src * factor, where one row of factors belongs to all pixels of a sample, or to one pixel.
class MulOp final : public OwnKernelOp {
 public:
  explicit MulOp(const OpArguments& a)
      : OwnKernelOp(a),
        factor_(*a.src[1]),
        d_factor_(a.d_src[1]),
        pixels_(src_.pixels() / factor_.pixels()),
        items_(std::int64_t{1} * a.build.options.batch * factor_.pixels()) {}

  void forward(ExecContext& exec) override {
    over_items(exec, [&](Range part) {
      exec.typed(dst_.storage)
          .scale(exec.memory.at(src_.buffer), exec.memory.at(factor_.buffer), exec.memory.at(dst_.buffer),
                 pixels_, src_.shape.channels, part.begin, part.end);
    });
  }
  void backward(ExecContext& exec) override {
    if (!d_src_ && !d_factor_) return;
    const void* d_dst = merged_gradient(exec, dst_);
    const TypedKernels& typed = exec.typed(dst_.gradient_storage);
    over_items(exec, [&](Range part) {
      const int channels = src_.shape.channels;
      if (d_factor_)
        typed.scale_gradient(exec.memory.at(src_.buffer), d_dst, exec.memory.at(d_factor_), pixels_, channels,
                             part.begin, part.end);
      if (d_src_)
        typed.scale(d_dst, exec.memory.at(factor_.buffer), exec.memory.at(d_src_), pixels_, channels,
                    part.begin, part.end);
    });
  }

 private:
  template <typename Work>
  void over_items(const ExecContext& exec, const Work& work) const {
    parallel_ranges(exec.pool, items_, least_of(std::int64_t{1} * pixels_ * src_.shape.channels),
                    [&](int, Range part) { work(part); });
  }

  const Value& factor_;
  const BufferId d_factor_;
  const int pixels_;          ///< that share a row of factors
  const std::int64_t items_;  ///< rows of factors
};

}  // namespace

std::unique_ptr<CompiledOp> make_op(const graph::Mul&, const OpArguments& a) {
  return std::make_unique<MulOp>(a);
}

}  // namespace paceline::engine::cpu

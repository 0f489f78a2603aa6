// Dropout. The backward pass computes the mask again, so it is not stored.

#include "engine/cuda/kernels/dropout.h"

#include "engine/cuda/ops/factories.h"
#include "engine/dropout_mask.h"

namespace paceline::engine::cuda {
namespace {

class DropoutOp final : public CompiledOp {
 public:
  DropoutOp(const graph::Dropout& dropout, const OpArguments& a)
      : name_(a.build.op().name),
        // The kernel adds step and position.
        mask_(a.build.options.seed, 0, 0, a.build.node, dropout.probability),
        src_(*a.src[0]),
        dst_(a.dst),
        d_src_(a.d_src[0]),
        scale_(static_cast<float>(1 / (1 - dropout.probability))) {}

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
      exec.launch(Dropout<T>{.src = static_cast<const T*>(src),
                             .dst = static_cast<T*>(dst),
                             .step = exec.numbers,
                             .samples = exec.options.batch,
                             .pixels = src_.pixels(),
                             .channels = src_.channels(),
                             .used = src_.shape.channels,
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

std::unique_ptr<CompiledOp> make_op(const graph::Dropout& op, const OpArguments& a) {
  return std::make_unique<DropoutOp>(op, a);
}

}  // namespace paceline::engine::cuda

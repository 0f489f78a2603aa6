// Compiled pad.

#include "engine/cuda/kernels/pad.h"

#include "engine/cuda/ops/factories.h"

namespace paceline::engine::cuda {
namespace {

class PadOp final : public KernelOp {
 public:
  PadOp(const graph::Pad& pad, const OpArguments& a) : KernelOp(a), pad_(pad) {}

  void forward(ExecContext& exec) override {
    place(exec, exec.memory.at(src_.buffer), src_, exec.memory.at(dst_.buffer), dst_, 1);
  }
  void backward(ExecContext& exec) override {
    if (d_src_) place(exec, merged_gradient(exec, dst_), dst_, exec.memory.at(d_src_), src_, -1);
  }

 private:
  static PaddedImage image(const Value& value) {
    return {value.shape.height, value.shape.width, value.shape.channels, value.channels()};
  }
  void place(ExecContext& exec, const void* from, const Value& of_from, void* to, const Value& of_to,
             int sign) const {
    with_storage(exec.options.precision, [&]<typename T>(T) {
      exec.launch(PlaceImage<T>{.samples = exec.options.batch,
                                .from = static_cast<const T*>(from),
                                .from_image = image(of_from),
                                .to = static_cast<T*>(to),
                                .to_image = image(of_to),
                                .row = sign * pad_.top,
                                .column = sign * pad_.left,
                                .channel = sign * pad_.front});
    });
  }

  const graph::Pad pad_;
};

}  // namespace

std::unique_ptr<CompiledOp> make_op(const graph::Pad& op, const OpArguments& a) {
  return std::make_unique<PadOp>(op, a);
}
std::unique_ptr<CompiledOp> make_op(const graph::FirstPlace&, const OpArguments& a) {
  return std::make_unique<PadOp>(graph::first_place_of(a.src[0]->shape), a);
}

}  // namespace paceline::engine::cuda

// Compiled attention.

#include "engine/cuda/kernels/attention.h"

#include <cmath>

#include "base/error.h"
#include "engine/cuda/ops/factories.h"

namespace paceline::engine::cuda {
namespace {

class AttentionOp final : public KernelOp {
 public:
  AttentionOp(const graph::Attention& attention, const OpArguments& a)
      : KernelOp(a),
        shape_{.samples = a.build.options.batch,
               .places = dst_.pixels(),
               .heads = attention.heads,
               .width = dst_.shape.channels / attention.heads,
               .src_channels = src_.channels(),
               .dst_channels = dst_.channels(),
               .scale = static_cast<float>(
                   1 / std::sqrt(static_cast<double>(dst_.shape.channels / attention.heads)))} {
    if (shape_.width > AttentionShape::kMostWidth)
      base::fail(base::ErrorKind::usage,
                 "attention '{}': a head must have at most {} channels on the cuda engine, but has {}; take "
                 "more heads",
                 name_, AttentionShape::kMostWidth, shape_.width);
    if (d_src_)
      statistics_ = a.build.memory.live(std::int64_t{3} * 4 * shape_.samples * shape_.heads * shape_.places,
                                        a.build.forward_at, a.build.backward_at);
  }

  void forward(ExecContext& exec) override {
    with_storage(exec.options.precision, [&]<typename T>(T) {
      exec.launch(
          AttentionForward<T>{.shape = shape_,
                              .src = exec.memory.at<T>(src_.buffer),
                              .dst = exec.memory.at<T>(dst_.buffer),
                              .statistics = exec.training ? exec.memory.at<float>(statistics_) : nullptr});
    });
  }
  void backward(ExecContext& exec) override {
    if (!d_src_) return;
    const void* d_dst = merged_gradient(exec, dst_);
    with_storage(exec.options.precision, [&]<typename T>(T) {
      exec.launch(AttentionGradientOfQueries<T>{.shape = shape_,
                                                .src = exec.memory.at<T>(src_.buffer),
                                                .dst = exec.memory.at<T>(dst_.buffer),
                                                .d_dst = static_cast<const T*>(d_dst),
                                                .statistics = exec.memory.at<float>(statistics_),
                                                .d_src = exec.memory.at<T>(d_src_)});
      exec.launch(AttentionGradientOfKeys<T>{.shape = shape_,
                                             .src = exec.memory.at<T>(src_.buffer),
                                             .d_dst = static_cast<const T*>(d_dst),
                                             .statistics = exec.memory.at<float>(statistics_),
                                             .d_src = exec.memory.at<T>(d_src_)});
    });
  }

 private:
  const AttentionShape shape_;
  BufferId statistics_;  ///< live from forward to backward
};

}  // namespace

std::unique_ptr<CompiledOp> make_op(const graph::Attention& op, const OpArguments& a) {
  return std::make_unique<AttentionOp>(op, a);
}

}  // namespace paceline::engine::cuda

// Compiled elementwise ops: conversion of the input, activations, the sum of two values, dropout, stochastic
// depth.

#include "engine/cuda/kernels/elementwise.h"
#include "engine/cuda/kernels/gather.h"
#include "engine/cuda/ops/factories.h"
#include "engine/dropout_mask.h"
#include "graph/ops.h"

namespace paceline::engine::cuda {

namespace {

/// Dropout and stochastic depth. The backward pass computes the mask again, so it is not stored.
template <typename Op>
class DropOp final : public KernelOp {
 public:
  DropOp(const Op& op, const OpArguments& a)
      : KernelOp(a),
        // The kernel adds step and position.
        mask_(a.build.options.seed, 0, 0, a.build.node, op.probability),
        scale_(static_cast<float>(1 / (1 - op.probability))) {}

  void forward(ExecContext& exec) override {
    if (exec.training)
      apply(exec, exec.memory.at(src_.buffer), exec.memory.at(dst_.buffer));
    else
      exec.copy(src_, exec.memory.at(src_.buffer), exec.memory.at(dst_.buffer));
  }
  void backward(ExecContext& exec) override {
    if (d_src_) apply(exec, merged_gradient(exec, dst_), exec.memory.at(d_src_));
  }

 private:
  void apply(const ExecContext& exec, const void* src, void* dst) const {
    with_storage(exec.options.precision, [&]<typename T>(T) {
      if constexpr (std::is_same_v<Op, graph::Dropout>)
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
      else
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

  const DropoutMask mask_;
  const float scale_;
};

/// Converts images to the storage type: those that the host gave, or stored ones by the host's draws.
class InputOp final : public CompiledOp {
 public:
  explicit InputOp(const OpArguments& a) : dst_(a.dst) {}
  void forward(ExecContext& exec) override {
    with_storage(exec.options.precision, [&]<typename T>(T) {
      // In a short evaluation the rest becomes 0, so that no undefined values are computed with.
      if (exec.draws != nullptr) return exec.launch(gathered<T>(exec));
      exec.launch(InputImages<T>{.src = exec.images,
                                 .dst = exec.memory.at<T>(dst_.buffer),
                                 .pixels = std::int64_t{1} * exec.options.batch * dst_.pixels(),
                                 .filled = std::int64_t{1} * exec.samples * dst_.pixels(),
                                 .channels = dst_.shape.channels,
                                 .padded = dst_.channels()});
    });
  }
  void backward(ExecContext&) override {}
  void describe(std::vector<KernelChoice>&) const override {}

 private:
  template <typename T>
  [[nodiscard]] GatherImages<T> gathered(const ExecContext& exec) const {
    return {.stored = exec.stored,
            .byte_values = exec.byte_values,
            .draws = exec.draws,
            .dst = exec.memory.at<T>(dst_.buffer),
            .pixels = std::int64_t{1} * exec.options.batch * dst_.pixels(),
            .samples = exec.samples,
            .height = dst_.shape.height,
            .width = dst_.shape.width,
            .channels = dst_.shape.channels,
            .padded = dst_.channels()};
  }

  const Value& dst_;
};

/// dst = Function(src); d_src = Gradient(kept value, d_dst).
template <typename Function, typename Gradient>
class MapOp final : public KernelOp {
 public:
  explicit MapOp(const OpArguments& a)
      : KernelOp(a), kept_(graph::rule_of(a.build.op().op).saved.dst ? dst_ : src_) {}
  void forward(ExecContext& exec) override {
    with_storage(exec.options.precision, [&]<typename T>(T) {
      exec.launch(Map1<Function, T>{.src = exec.memory.at<T>(src_.buffer),
                                    .dst = exec.memory.at<T>(dst_.buffer),
                                    .vectors = exec.vectors(dst_)});
    });
  }
  void backward(ExecContext& exec) override {
    if (!d_src_) return;
    void* d_dst = merged_gradient(exec, dst_);
    with_storage(exec.options.precision, [&]<typename T>(T) {
      exec.launch(Map2<Gradient, T>{.first = exec.memory.at<T>(kept_.buffer),
                                    .second = static_cast<T*>(d_dst),
                                    .dst = exec.memory.at<T>(d_src_),
                                    .vectors = exec.vectors(dst_)});
    });
  }

 private:
  const Value& kept_;  ///< src or dst
};

class AddOp final : public KernelOp {
 public:
  explicit AddOp(const OpArguments& a)
      : KernelOp(a), right_(*a.src[1]), relu_(a.group.relu), d_right_(a.d_src[1]) {}
  void forward(ExecContext& exec) override {
    with_storage(exec.options.precision, [&]<typename T>(T) {
      if (relu_)
        exec.launch(sum_of<AddReluFunction, T>(exec));
      else
        exec.launch(sum_of<AddFunction, T>(exec));
    });
  }
  void backward(ExecContext& exec) override {
    if (!d_src_ && !d_right_) return;
    void* d_dst = merged_gradient(exec, dst_);
    if (relu_) mask_by_relu(exec, dst_, d_dst);
    exec.copy(dst_, d_dst, exec.memory.at(d_src_));
    exec.copy(dst_, d_dst, exec.memory.at(d_right_));
  }

 private:
  template <typename Function, typename T>
  [[nodiscard]] Map2<Function, T> sum_of(const ExecContext& exec) const {
    return {.first = exec.memory.at<T>(src_.buffer),
            .second = exec.memory.at<T>(right_.buffer),
            .dst = exec.memory.at<T>(dst_.buffer),
            .vectors = exec.vectors(dst_)};
  }

  const Value& right_;
  const bool relu_;
  const BufferId d_right_;
};

}  // namespace

std::unique_ptr<CompiledOp> make_op(const graph::Dropout& op, const OpArguments& a) {
  return std::make_unique<DropOp<graph::Dropout>>(op, a);
}
std::unique_ptr<CompiledOp> make_op(const graph::StochasticDepth& op, const OpArguments& a) {
  return std::make_unique<DropOp<graph::StochasticDepth>>(op, a);
}

std::unique_ptr<CompiledOp> make_op(const graph::Input&, const OpArguments& a) {
  return std::make_unique<InputOp>(a);
}
#define PACELINE_DEFINE(Op, name)                                               \
  std::unique_ptr<CompiledOp> make_op(const graph::Op&, const OpArguments& a) { \
    return std::make_unique<MapOp<Op##Function, Op##Gradient>>(a);              \
  }
PACELINE_ELEMENTWISE_OPS(PACELINE_DEFINE)
#undef PACELINE_DEFINE
std::unique_ptr<CompiledOp> make_op(const graph::Add&, const OpArguments& a) {
  return std::make_unique<AddOp>(a);
}

}  // namespace paceline::engine::cuda

// Compiled elementwise ops: conversion of the input, activations, the sum of two values, dropout, stochastic
// depth.

#include <vector>

#include "engine/cpu/ops/factories.h"
#include "engine/cpu/parallel.h"
#include "engine/dropout_mask.h"
#include "graph/ops.h"

namespace paceline::engine::cpu {

namespace {

// Dropout. The mask counts elements in C, H, W order (dropout_mask.h) and is stored like the values, channels
// last: one byte per element, kept from forward to backward.

class DropoutOp final : public OwnKernelOp {
 public:
  explicit DropoutOp(const OpArguments& a)
      : OwnKernelOp(a),
        node_(a.build.node),
        probability_(a.build.op().as<graph::Dropout>()->probability),
        scale_(static_cast<float>(1 / (1 - probability_))) {
    const CompileOptions& options = a.build.options;
    MemoryRequests& memory = a.build.memory;
    if (options.training)
      keep_ = memory.live(options.batch * src_.shape.elements(), a.build.forward_at, a.build.backward_at);
    // Each thread transposes the mask of one sample at a time.
    memory.scratch(options.threads * whole_lines(src_.shape.elements()));
  }

  void forward(ExecContext& exec) override {
    const std::byte* src = exec.memory.at(src_.buffer);
    std::byte* dst = exec.memory.at(dst_.buffer);
    const std::int64_t elements = src_.shape.elements(), size = bytes_of(src_.storage);
    exec.pool.run(exec.options.batch, [&](int n, int thread) {
      const std::int64_t at = n * elements;
      if (exec.training) {
        draw_mask(exec, thread, n);
        exec.typed(src_.storage).dropout(src + at * size, keep(exec, at), scale_, dst + at * size, elements);
      } else {
        std::copy_n(src + at * size, elements * size, dst + at * size);
      }
    });
  }

  void backward(ExecContext& exec) override {
    if (!d_src_) return;
    const auto* d_dst = static_cast<const std::byte*>(merged_gradient(exec, dst_));
    std::byte* d_src = exec.memory.at(d_src_);
    const std::int64_t size = bytes_of(dst_.gradient_storage);
    over_elements(exec, src_, [&](Range part) {
      exec.typed(dst_.gradient_storage)
          .dropout(d_dst + part.begin * size, keep(exec, part.begin), scale_, d_src + part.begin * size,
                   part.size());
      if (src_.gradient_comes_masked) mask_by_relu(exec, src_, d_src_, part.begin, part.size());
    });
  }
  [[nodiscard]] Masking masking() const override { return Masking::by_value; }

 private:
  [[nodiscard]] std::uint8_t* keep(const ExecContext& exec, std::int64_t element) const {
    return exec.memory.at<std::uint8_t>(keep_) + element;
  }

  void draw_mask(const ExecContext& exec, int thread, std::int64_t sample) const {
    const std::int64_t elements = src_.shape.elements();
    const DropoutMask mask(exec.options.seed, exec.input.step, exec.input.first_position + sample, node_,
                           probability_);
    const auto counter = mask.counter();
    const auto key = mask.key();
    std::uint8_t* to = keep(exec, sample * elements);
    if (src_.pixels() == 1) {
      exec.kernels.dropout_mask(counter.data(), key.data(), mask.threshold(), to, elements);
      return;
    }
    auto* planes = reinterpret_cast<std::uint8_t*>(exec.memory.scratch) + thread * whole_lines(elements);
    exec.kernels.dropout_mask(counter.data(), key.data(), mask.threshold(), planes, elements);
    exec.kernels.channels_last(planes, src_.shape.channels, src_.pixels(), to);
  }

  const int node_;
  const double probability_;
  const float scale_;
  BufferId keep_;
};

/// Drops whole samples.
class StochasticDepthOp final : public OwnKernelOp {
 public:
  explicit StochasticDepthOp(const OpArguments& a)
      : OwnKernelOp(a),
        node_(a.build.node),
        probability_(a.build.op().as<graph::StochasticDepth>()->probability) {}

  void forward(ExecContext& exec) override {
    apply(exec, exec.memory.at(src_.buffer), exec.memory.at(dst_.buffer), dst_.storage);
  }
  void backward(ExecContext& exec) override {
    if (d_src_) apply(exec, merged_gradient(exec, dst_), exec.memory.at(d_src_), dst_.gradient_storage);
  }

 private:
  void apply(const ExecContext& exec, const void* src, void* dst, Storage storage) const {
    const std::int64_t elements = src_.shape.elements(), bytes = elements * bytes_of(storage);
    exec.pool.run(exec.options.batch, [&](int n, int) {
      const auto* from = static_cast<const std::byte*>(src) + n * bytes;
      auto* to = static_cast<std::byte*>(dst) + n * bytes;
      const DropoutMask mask(exec.options.seed, exec.input.step, exec.input.first_position + n, node_,
                             probability_);
      if (!exec.training)
        std::copy_n(from, bytes, to);
      else if (mask.keeps_sample())
        exec.typed(storage).times(from, static_cast<float>(1 / (1 - probability_)), to, elements);
      else
        std::fill_n(to, bytes, std::byte{0});
    });
  }

  const int node_;
  const double probability_;
};

}  // namespace

std::unique_ptr<CompiledOp> make_op(const graph::Dropout&, const OpArguments& a) {
  return std::make_unique<DropoutOp>(a);
}
std::unique_ptr<CompiledOp> make_op(const graph::StochasticDepth&, const OpArguments& a) {
  return std::make_unique<StochasticDepthOp>(a);
}

namespace {

std::byte* offset(void* first, std::int64_t element, Storage storage) {
  return static_cast<std::byte*>(first) + element * bytes_of(storage);
}

/// Copies the images (the caller may reuse their memory before backward) into storage.
class InputOp final : public CompiledOp {
 public:
  explicit InputOp(const Value& dst) : dst_(dst) {}
  void forward(ExecContext& exec) override {
    void* dst = exec.memory.at(dst_.buffer);
    const std::int64_t given = exec.samples * dst_.shape.elements();
    over_elements(exec, dst_, [&](Range part) {
      const TypedKernels& typed = exec.typed(dst_.storage);
      const std::int64_t middle = std::clamp(given, part.begin, part.end);
      typed.from_float(exec.input.images.data() + part.begin, offset(dst, part.begin, dst_.storage), false,
                       middle - part.begin);
      // After the samples of a short evaluation: zeros, so that no op computes with undefined values.
      const std::int64_t size = bytes_of(dst_.storage);
      std::fill_n(offset(dst, middle, dst_.storage), (part.end - middle) * size, std::byte{0});
    });
  }
  void backward(ExecContext&) override {}
  void describe(const ExecContext&, std::vector<KernelChoice>&) const override {}

 private:
  const Value& dst_;
};

struct MapKernels {
  void (*TypedKernels::*forward)(const void* src, void* dst, std::int64_t count);
  void (*TypedKernels::*backward)(const void* kept, const void* d_dst, void* d_src, std::int64_t count);
};

/// An op that maps each element separately (kernels/kernels.h).
class MapOp final : public OwnKernelOp {
 public:
  MapOp(const OpArguments& a, const MapKernels& kernels)
      : OwnKernelOp(a), kept_(graph::rule_of(a.build.op().op).saved.dst ? dst_ : src_), kernels_(kernels) {}
  void forward(ExecContext& exec) override {
    void* src = exec.memory.at(src_.buffer);
    void* dst = exec.memory.at(dst_.buffer);
    const Storage s = dst_.storage;
    const auto kernel = exec.typed(s).*kernels_.forward;
    over_elements(exec, dst_, [&](Range part) {
      kernel(offset(src, part.begin, s), offset(dst, part.begin, s), part.size());
    });
  }
  void backward(ExecContext& exec) override {
    if (!d_src_) return;
    void* d_dst = merged_gradient(exec, dst_);
    void* kept = exec.memory.at(kept_.buffer);
    void* d_src = exec.memory.at(d_src_);
    const Storage s = dst_.storage;
    const auto kernel = exec.typed(s).*kernels_.backward;
    over_elements(exec, dst_, [&](Range part) {
      kernel(offset(kept, part.begin, s), offset(d_dst, part.begin, s), offset(d_src, part.begin, s),
             part.size());
    });
  }

 private:
  const Value& kept_;  ///< src_ or dst_
  const MapKernels kernels_;
};

class AddOp final : public OwnKernelOp {
 public:
  explicit AddOp(const OpArguments& a)
      : OwnKernelOp(a), right_(*a.src[1]), d_right_(a.d_src[1]), relu_(a.group.relu) {}
  void forward(ExecContext& exec) override {
    void* left = exec.memory.at(src_.buffer);
    void* right = exec.memory.at(right_.buffer);
    void* dst = exec.memory.at(dst_.buffer);
    const Storage s = dst_.storage;
    over_elements(exec, dst_, [&](Range part) {
      exec.typed(s).add(offset(left, part.begin, s), offset(right, part.begin, s), offset(dst, part.begin, s),
                        relu_, part.size());
    });
  }
  void backward(ExecContext& exec) override {
    if (!d_src_ && !d_right_) return;
    void* d_dst = merged_gradient(exec, dst_);
    const Storage s = dst_.gradient_storage;
    if (relu_) {
      void* dst = exec.memory.at(dst_.buffer);
      over_elements(exec, dst_, [&](Range part) {
        exec.typed(s).relu_backward(offset(dst, part.begin, s), offset(d_dst, part.begin, s),
                                    offset(d_dst, part.begin, s), part.size());
      });
    }
    for (const BufferId d_src : {d_src_, d_right_}) {
      void* to = exec.memory.at(d_src);
      if (to == nullptr || to == d_dst) continue;
      over_elements(exec, dst_, [&](Range part) {
        std::copy_n(offset(d_dst, part.begin, s), part.size() * bytes_of(s), offset(to, part.begin, s));
      });
    }
  }
  void describe(const ExecContext& exec, std::vector<KernelChoice>& choices) const override {
    choices.push_back(own_kernel(exec, name_ + (relu_ ? " + relu" : "")));
  }

 private:
  const Value& right_;
  const BufferId d_right_;
  const bool relu_;
};

}  // namespace

std::unique_ptr<CompiledOp> make_op(const graph::Input&, const OpArguments& a) {
  return std::make_unique<InputOp>(a.dst);
}
std::unique_ptr<CompiledOp> make_op(const graph::Add&, const OpArguments& a) {
  return std::make_unique<AddOp>(a);
}
#define PACELINE_DEFINE(Op, function)                                                                       \
  std::unique_ptr<CompiledOp> make_op(const graph::Op&, const OpArguments& a) {                             \
    return std::make_unique<MapOp>(                                                                         \
        a, MapKernels{.forward = &TypedKernels::function, .backward = &TypedKernels::function##_backward}); \
  }
PACELINE_ELEMENTWISE_OPS(PACELINE_DEFINE)
#undef PACELINE_DEFINE

}  // namespace paceline::engine::cpu

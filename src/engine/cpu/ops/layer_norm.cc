// Compiled layer norm, and learned factors of the channels. A row is the channels of one place.
//
// Each direction moves an activation once: forward reads src and writes dst; backward reads src and d_dst and
// writes d_src, which may lie in d_dst's memory, and takes the sums for the parameters meanwhile. Mean and
// deviation of each row are kept from forward to backward.

#include <algorithm>

#include "engine/cpu/ops/factories.h"
#include "engine/cpu/ops/parameter_sums.h"
#include "engine/cpu/parallel.h"
#include "graph/ops.h"

namespace paceline::engine::cpu {
namespace {

/// What layer norm and learned factors share: rows, parameters, and the passes over them.
class RowOp : public OwnKernelOp {
 public:
  RowOp(const OpArguments& a, int parameters)
      : OwnKernelOp(a),
        channels_(src_.shape.channels),
        rows_(std::int64_t{1} * a.build.options.batch * src_.pixels()),
        learns_(a.build.learns()),
        weight_at_(a.build.parameter(0)),
        sums_(a.build, parameters * channels_, rows_, channels_) {}

 protected:
  [[nodiscard]] std::byte* row_of(std::byte* first, std::int64_t row, Storage storage) const {
    return first == nullptr ? nullptr : first + row * channels_ * bytes_of(storage);
  }
  [[nodiscard]] std::byte* src_row(const ExecContext& exec, std::int64_t row) const {
    return row_of(exec.memory.at(src_.buffer), row, src_.storage);
  }
  [[nodiscard]] std::byte* dst_row(const ExecContext& exec, std::int64_t row) const {
    return row_of(exec.memory.at(dst_.buffer), row, dst_.storage);
  }
  [[nodiscard]] std::byte* d_src_row(const ExecContext& exec, std::int64_t row) const {
    return row_of(exec.memory.at(d_src_), row, src_.gradient_storage);
  }

  const int channels_;
  const std::int64_t rows_;
  const bool learns_;
  const std::int64_t weight_at_;
  ParameterSums sums_;
};

class LayerNormOp final : public RowOp {
 public:
  explicit LayerNormOp(const OpArguments& a)
      : RowOp(a, 2),
        epsilon_(static_cast<float>(a.build.op().as<graph::LayerNorm>()->epsilon)),
        bias_at_(a.build.parameter(1)) {
    if (a.build.options.training && !dst_.gradient.empty())
      statistics_ = a.build.memory.live(8 * rows_, a.build.forward_at, a.build.backward_at);
  }

  void forward(ExecContext& exec) override {
    float* const statistics = exec.training ? exec.memory.at<float>(statistics_) : nullptr;
    over_pixels(exec, src_, [&](Range rows) {
      exec.typed(src_.storage)
          .layer_norm({.src = src_row(exec, rows.begin),
                       .dst = dst_row(exec, rows.begin),
                       .weight = exec.weights + weight_at_,
                       .bias = exec.weights + bias_at_,
                       .epsilon = epsilon_,
                       .statistics = statistics == nullptr ? nullptr : statistics + 2 * rows.begin},
                      rows.size(), channels_);
    });
  }

  void backward(ExecContext& exec) override {
    float* const d_weight = exec.gradients + weight_at_;
    float* const d_bias = exec.gradients + bias_at_;
    if (!learns_) {
      std::fill_n(d_weight, channels_, 0.0f);
      std::fill_n(d_bias, channels_, 0.0f);
      if (!d_src_) return;  // and so is everything before it
    }
    std::byte* const d_dst = static_cast<std::byte*>(merged_gradient(exec, dst_));
    const auto work = [&](Range rows, double* sums, float* scratch) {
      exec.typed(src_.storage)
          .layer_norm_backward({.src = src_row(exec, rows.begin),
                                .d_dst = row_of(d_dst, rows.begin, dst_.gradient_storage),
                                .d_src = d_src_row(exec, rows.begin),
                                .weight = exec.weights + weight_at_,
                                .statistics = exec.memory.at<float>(statistics_) + 2 * rows.begin},
                               rows.size(), channels_, sums, scratch);
    };
    if (!learns_) return over_pixels(exec, src_, [&](Range rows) { work(rows, nullptr, nullptr); });
    const float* const sums = sums_.sum(exec, work);
    std::copy_n(sums, channels_, d_bias);
    std::copy_n(sums + channels_, channels_, d_weight);
  }

 private:
  const float epsilon_;
  const std::int64_t bias_at_;
  BufferId statistics_;  ///< [rows][2]
};

class ScaleOp final : public RowOp {
 public:
  explicit ScaleOp(const OpArguments& a) : RowOp(a, 2) {}  // the kernel's sums have two halves

  void forward(ExecContext& exec) override {
    over_pixels(exec, src_, [&](Range rows) {
      exec.typed(src_.storage)
          .scale_channels(src_row(exec, rows.begin), exec.weights + weight_at_, dst_row(exec, rows.begin),
                          rows.size(), channels_);
    });
  }

  void backward(ExecContext& exec) override {
    if (!learns_) std::fill_n(exec.gradients + weight_at_, channels_, 0.0f);
    if (!learns_ && !d_src_) return;
    std::byte* const d_dst = static_cast<std::byte*>(merged_gradient(exec, dst_));
    const TypedKernels& typed = exec.typed(src_.storage);
    if (!learns_)
      return over_pixels(exec, src_, [&](Range rows) {
        typed.scale_channels(row_of(d_dst, rows.begin, dst_.gradient_storage), exec.weights + weight_at_,
                             d_src_row(exec, rows.begin), rows.size(), channels_);
      });
    const float* const sums = sums_.sum(exec, [&](Range rows, double* part, float*) {
      typed.scale_channels_backward({.src = src_row(exec, rows.begin),
                                     .d_dst = row_of(d_dst, rows.begin, dst_.gradient_storage),
                                     .d_src = d_src_row(exec, rows.begin),
                                     .weight = exec.weights + weight_at_},
                                    rows.size(), channels_, part);
    });
    std::copy_n(sums, channels_, exec.gradients + weight_at_);
  }
};

}  // namespace

std::unique_ptr<CompiledOp> make_op(const graph::LayerNorm&, const OpArguments& a) {
  return std::make_unique<LayerNormOp>(a);
}
std::unique_ptr<CompiledOp> make_op(const graph::Scale&, const OpArguments& a) {
  return std::make_unique<ScaleOp>(a);
}

}  // namespace paceline::engine::cpu

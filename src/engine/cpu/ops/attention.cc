// Compiled attention. Tasks are heads of samples, forward also blocks of their rows where heads are few; no
// task depends on the number of threads, and no bits on the blocks.

#include <algorithm>
#include <cmath>

#include "engine/cpu/ops/factories.h"
#include "engine/cpu/parallel.h"

namespace paceline::engine::cpu {
namespace {

class AttentionOp final : public OwnKernelOp {
 public:
  AttentionOp(const graph::Attention& attention, const OpArguments& a)
      : OwnKernelOp(a),
        shape_{.places = dst_.pixels(),
               .heads = attention.heads,
               .width = dst_.shape.channels / attention.heads},
        scale_(static_cast<float>(1 / std::sqrt(static_cast<double>(shape_.width)))),
        thread_bytes_(whole_lines(4 * std::max(AttentionForward::scratch(shape_),
                                               d_src_ ? AttentionBackward::scratch(shape_) : 0))) {
    if (d_src_)
      statistics_ = a.build.memory.live(a.build.options.batch * statistics_of_sample() * 4,
                                        a.build.forward_at, a.build.backward_at);
    a.build.memory.scratch(a.build.options.threads * thread_bytes_);
  }

  void forward(ExecContext& exec) override {
    const int blocks = row_blocks(exec.options.batch);
    exec.pool.run(exec.options.batch * shape_.heads * blocks, [&](int task, int thread) {
      const int item = task / blocks;
      const std::int64_t sample = item / shape_.heads;
      const Range rows = range_of(shape_.places, task % blocks, blocks, kAttentionRows);
      const AttentionForward args{.shape = shape_,
                                  .scale = scale_,
                                  .src = sample_of(exec.memory.at(src_.buffer), src_, src_.storage, sample),
                                  .dst = sample_of(exec.memory.at(dst_.buffer), dst_, dst_.storage, sample),
                                  .statistics = exec.training && d_src_ ? statistics(exec, sample) : nullptr};
      exec.typed(dst_.storage)
          .attention(args, item % shape_.heads, rows.begin, rows.end, scratch(exec, thread));
    });
  }
  void backward(ExecContext& exec) override {
    if (!d_src_) return;
    void* d_dst = merged_gradient(exec, dst_);
    exec.pool.run(exec.options.batch * shape_.heads, [&](int item, int thread) {
      const std::int64_t sample = item / shape_.heads;
      const AttentionBackward args{
          .shape = shape_,
          .scale = scale_,
          .src = sample_of(exec.memory.at(src_.buffer), src_, src_.storage, sample),
          .statistics = statistics(exec, sample),
          .d_dst = sample_of(d_dst, dst_, dst_.gradient_storage, sample),
          .d_src = sample_of(exec.memory.at(d_src_), src_, src_.gradient_storage, sample)};
      exec.typed(dst_.gradient_storage).attention_backward(args, item % shape_.heads, scratch(exec, thread));
    });
  }

 private:
  /// A block packs all keys and values again, so that more of them cost more.
  [[nodiscard]] int row_blocks(int batch) const {
    const int most = (shape_.places + kAttentionRows - 1) / kAttentionRows;
    return std::clamp(kMostRanges / (batch * shape_.heads), 1, most);
  }
  [[nodiscard]] std::int64_t statistics_of_sample() const {
    return std::int64_t{2} * shape_.heads * shape_.places;
  }
  [[nodiscard]] float* statistics(const ExecContext& exec, std::int64_t sample) const {
    return exec.memory.at<float>(statistics_) + sample * statistics_of_sample();
  }
  [[nodiscard]] float* scratch(const ExecContext& exec, int thread) const {
    return reinterpret_cast<float*>(exec.memory.scratch + thread * thread_bytes_);
  }
  static std::byte* sample_of(void* first, const Value& value, Storage storage, std::int64_t sample) {
    return static_cast<std::byte*>(first) + sample * value.shape.elements() * bytes_of(storage);
  }

  const AttentionShape shape_;
  const float scale_;
  const std::int64_t thread_bytes_;
  BufferId statistics_;  ///< two floats for each row of each head
};

}  // namespace

std::unique_ptr<CompiledOp> make_op(const graph::Attention& op, const OpArguments& a) {
  return std::make_unique<AttentionOp>(op, a);
}

}  // namespace paceline::engine::cpu

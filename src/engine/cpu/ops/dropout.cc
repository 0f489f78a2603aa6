// Dropout. The mask counts elements in C, H, W order (dropout_mask.h) and is stored like the values, channels
// last: one byte per element, kept from forward to backward.

#include <vector>

#include "engine/cpu/ops/factories.h"
#include "engine/cpu/parallel.h"
#include "engine/dropout_mask.h"

namespace paceline::engine::cpu {
namespace {

class DropoutOp final : public CompiledOp {
 public:
  DropoutOp(const BuildContext& build, const Value& src, const Value& dst, BufferId d_src)
      : name_(build.op().name),
        node_(build.node),
        src_(src),
        dst_(dst),
        d_src_(d_src),
        probability_(build.op().as<graph::Dropout>()->probability),
        scale_(static_cast<float>(1 / (1 - probability_))) {
    if (build.options.training)
      keep_ =
          build.memory.live(build.options.batch * src.shape.elements(), build.forward_at, build.backward_at);
    // Each thread transposes the mask of one sample at a time.
    build.memory.scratch(build.options.threads * whole_lines(src.shape.elements()));
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
    parallel_ranges(exec.pool, exec.options.batch * src_.shape.elements(), kRangeElements,
                    [&](int, Range part) {
                      exec.typed(dst_.gradient_storage)
                          .dropout(d_dst + part.begin * size, keep(exec, part.begin), scale_,
                                   d_src + part.begin * size, part.size());
                      if (src_.gradient_comes_masked)
                        mask_by_relu(exec, src_, d_src_, part.begin, part.size());
                    });
  }
  [[nodiscard]] Masking masking() const override { return Masking::by_value; }

  void describe(const ExecContext& exec, std::vector<KernelChoice>& choices) const override {
    choices.push_back(own_kernel(exec, name_));
  }

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

  const std::string name_;
  const int node_;
  const Value& src_;
  const Value& dst_;
  const BufferId d_src_;
  const double probability_;
  const float scale_;
  BufferId keep_;
};

}  // namespace

std::unique_ptr<CompiledOp> make_op(const graph::Dropout&, const OpArguments& a) {
  return std::make_unique<DropoutOp>(a.build, *a.src[0], a.dst, a.d_src[0]);
}

}  // namespace paceline::engine::cpu

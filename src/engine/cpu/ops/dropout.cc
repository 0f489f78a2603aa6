// Dropout. The mask counts elements in C, H, W order (dropout_mask.h) and lies here as the values do,
// channels last: one byte an element, kept from forward to backward.

#include <vector>

#include "engine/cpu/ops/factories.h"
#include "engine/cpu/parallel.h"
#include "engine/dropout_mask.h"

namespace paceline::engine::cpu {
namespace {

class DropoutStep final : public Step {
 public:
  DropoutStep(const Site& site, const Value& src, const Value& dst, BufferId d_src)
      : name_(site.op().name),
        node_(site.node),
        src_(src),
        dst_(dst),
        d_src_(d_src),
        probability_(site.op().as<graph::Dropout>()->probability),
        scale_(static_cast<float>(1 / (1 - probability_))) {
    if (site.options.training)
      keep_ = site.memory.live(site.options.batch * src.shape.elements(), site.forward_at, site.backward_at);
    // Each thread turns one sample's mask at a time.
    site.memory.scratch(site.options.threads * whole_lines(src.shape.elements()));
  }

  void forward(Run& run) override {
    const std::byte* src = run.memory.at(src_.buffer);
    std::byte* dst = run.memory.at(dst_.buffer);
    const std::int64_t elements = src_.shape.elements(), size = bytes_of(src_.storage);
    run.pool.run(run.options.batch, [&](int n, int thread) {
      const std::int64_t at = n * elements;
      if (run.training) {
        draw_mask(run, thread, n);
        run.typed(src_.storage).dropout(src + at * size, keep(run, at), scale_, dst + at * size, elements);
      } else {
        std::copy_n(src + at * size, elements * size, dst + at * size);
      }
    });
  }

  void backward(Run& run) override {
    if (!d_src_) return;
    const auto* d_dst = static_cast<const std::byte*>(merged_gradient(run, dst_));
    std::byte* d_src = run.memory.at(d_src_);
    const std::int64_t size = bytes_of(dst_.gradient_storage);
    parallel_ranges(run.pool, run.options.batch * src_.shape.elements(), kRangeElements,
                    [&](int, Range part) {
                      run.typed(dst_.gradient_storage)
                          .dropout(d_dst + part.begin * size, keep(run, part.begin), scale_,
                                   d_src + part.begin * size, part.size());
                      if (src_.gradient_comes_masked)
                        mask_by_relu(run, src_, d_src_, part.begin, part.size());
                    });
  }
  [[nodiscard]] Masking masking() const override { return Masking::by_value; }

  void describe(const Run& run, std::vector<KernelChoice>& choices) const override {
    choices.push_back(own_kernel(run, name_));
  }

 private:
  [[nodiscard]] std::uint8_t* keep(const Run& run, std::int64_t element) const {
    return run.memory.at<std::uint8_t>(keep_) + element;
  }

  void draw_mask(const Run& run, int thread, std::int64_t sample) const {
    const std::int64_t elements = src_.shape.elements();
    const DropoutMask mask(run.options.seed, run.input.step, run.input.first_position + sample, node_,
                           probability_);
    const auto counter = mask.counter();
    const auto key = mask.key();
    std::uint8_t* to = keep(run, sample * elements);
    if (src_.pixels() == 1) {
      run.kernels.dropout_mask(counter.data(), key.data(), mask.threshold(), to, elements);
      return;
    }
    auto* planes = reinterpret_cast<std::uint8_t*>(run.memory.scratch) + thread * whole_lines(elements);
    run.kernels.dropout_mask(counter.data(), key.data(), mask.threshold(), planes, elements);
    run.kernels.channels_last(planes, src_.shape.channels, src_.pixels(), to);
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

std::unique_ptr<Step> make_dropout_step(const Site& site, const Value& src, const Value& dst,
                                        BufferId d_src) {
  return std::make_unique<DropoutStep>(site, src, dst, d_src);
}

}  // namespace paceline::engine::cpu

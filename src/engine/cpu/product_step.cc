// Convolutions and dense layers, in one of two ways: oneDNN works on the stored values themselves; or, bf16
// on machines without bf16 units, on float copies of a block of samples at a time, which stay in the cache.
// Either way storage is bf16, sums are float, and the weights are rounded to bf16 once an update.

#include <algorithm>
#include <cstring>

#include "engine/cpu/parallel.h"
#include "engine/cpu/product.h"
#include "engine/cpu/steps.h"

namespace paceline::engine::cpu {
namespace {

ProductShape product_shape(const Site& site, const Value& src, const Value& dst, bool direct, int samples) {
  ProductShape shape{.samples = samples,
                     .src = src.shape,
                     .dst = dst.shape,
                     .type = direct ? src.storage : Storage::f32,
                     .dst_type = direct ? dst.storage : Storage::f32};
  if (const auto* conv = site.op().as<graph::Conv2d>()) {
    shape.kernel = conv->kernel;
    shape.stride = conv->stride;
    shape.padding = conv->padding;
    shape.bias = conv->bias;
  } else {
    shape.is_dense = true;
    shape.bias = site.op().as<graph::Dense>()->bias;
  }
  return shape;
}

/// Blocks of nearly equal size, of at most `block_bytes` of float copies.
int samples_of_block(const Site& site, const Value& src, const Value& dst) {
  const std::int64_t batch = site.options.batch;
  const std::int64_t bytes = 4 * (src.shape.elements() + dst.shape.elements());
  const std::int64_t fitting = std::clamp<std::int64_t>(site.tuning.block_bytes / bytes, 1, batch);
  const std::int64_t blocks = (batch + fitting - 1) / fitting;
  return static_cast<int>((batch + blocks - 1) / blocks);
}

std::unique_ptr<Product> make_product(const Site& site, const ProductShape& shape,
                                      const ProductParts& parts) {
  const bool taps = can_use_taps(shape) && site.tuning.tap_products.value_or(should_use_taps(shape));
  return taps ? make_tap_product(shape, parts, site.options.threads) : make_onednn_product(shape, parts);
}

class ProductStep final : public Step {
 public:
  ProductStep(const Site& site, const Value& src, const Value& dst, bool relu, BufferId d_src)
      : name_(site.op().name),
        src_(src),
        dst_(dst),
        relu_(relu),
        d_src_(d_src),
        batch_(site.options.batch),
        weight_at_(site.parameter(0)),
        bias_at_(site.parameter(1)),
        weights_(site.graph.parameters[static_cast<std::size_t>(site.op().parameters[0])].elements()),
        direct_(src.storage == Storage::f32 || site.tuning.bf16_products.value_or(false)),
        block_(direct_ ? batch_ : samples_of_block(site, src, dst)),
        product_(make_product(site, product_shape(site, src, dst, direct_, block_),
                              {.d_src = static_cast<bool>(d_src), .d_weight = site.options.training})) {
    packed_forward_ = site.memory.kept(product_->packed_forward_bytes());
    if (product_->packed_backward_bytes() > 0)
      packed_backward_ = site.memory.kept(product_->packed_backward_bytes());
    plan_scratch(site.memory);
  }

  void bind(const Run& run) override {
    std::byte* scratch = run.memory.scratch;
    float* bias = bias_at_ >= 0 ? run.weights + bias_at_ : nullptr;
    ProductMemory memory{.packed_forward = run.memory.at(packed_forward_),
                         .packed_backward = run.memory.at(packed_backward_),
                         .bias = bias,
                         .d_weight = reinterpret_cast<float*>(scratch + d_weight_at_),
                         .d_bias = reinterpret_cast<float*>(scratch + d_bias_at_),
                         .scratchpad = scratch + scratchpad_at_};
    if (direct_) {
      memory.src = run.memory.at(src_.buffer);
      memory.dst = run.memory.at(dst_.buffer);
      memory.d_src = run.memory.at(d_src_);
      memory.d_dst = dst_.gradient.empty() ? nullptr : run.memory.at(dst_.gradient.front());
    } else {
      memory.src = scratch + src_at_;
      memory.dst = memory.d_dst = scratch + dst_at_;
      memory.d_src = scratch + d_src_at_;
    }
    product_->bind(memory);
  }

  void pack(Run& run) override {
    const float* weights = run.weights + weight_at_;
    if (!direct_) {
      float* rounded = reinterpret_cast<float*>(run.memory.scratch);
      parallel_parts(run.threads(), weights_, 16, [&](int, Part part) {
        run.kernels.round_to_bf16(weights + part.begin, rounded + part.begin, part.size());
      });
      weights = rounded;
    }
    product_->pack(weights);
  }

  void forward(Run& run) override { direct_ ? forward_direct(run) : forward_in_blocks(run); }

  void backward(Run& run) override {
    void* d_dst = merged_gradient(run, dst_);
    if (relu_) {
      const std::byte* dst = run.memory.at(dst_.buffer);
      const std::int64_t size = bytes_of(dst_.storage);
      std::byte* d = static_cast<std::byte*>(d_dst);
      parallel_parts(run.threads(), batch_ * dst_.shape.elements(), 16, [&](int, Part part) {
        run.typed(dst_.storage)
            .relu_backward(dst + part.begin * size, d + part.begin * size, d + part.begin * size,
                           part.size());
      });
    }
    direct_ ? backward_direct(run) : backward_in_blocks(run);
  }

  void describe(const Run&, std::vector<KernelChoice>& choices) const override {
    std::string reason =
        product_->is_by_taps()
            ? "few pixels, many channels: faster than oneDNN's convolution there"
            : "oneDNN's first choice for channels last; tap products need fp32, many channels "
              "and samples, and few pixels";
    if (!direct_)
      reason += "; bf16 is stored, multiplied in float by blocks of " + std::to_string(block_) +
                " samples, for want of bf16 units";
    choices.push_back({name_ + " forward", product_->forward_name(), reason});
    if (d_src_) choices.push_back({name_ + " backward data", product_->d_src_name(), reason});
    if (product_->packed_gradient_bytes() > 0)
      choices.push_back({name_ + " backward weights", product_->d_weight_name(), reason});
  }

 private:
  /// Scratch: [d_weight | its sum over blocks | d_bias | its sum | float copies | oneDNN's scratchpad].
  void plan_scratch(MemoryRequests& memory) {
    std::int64_t end = 0;
    const auto take = [&](std::int64_t bytes) {
      const std::int64_t at = end;
      end += whole_lines(bytes);
      return at;
    };
    const std::int64_t d_weight = product_->packed_gradient_bytes();
    const std::int64_t d_bias = d_weight > 0 && bias_at_ >= 0 ? 4 * dst_.shape.channels : 0;
    d_weight_at_ = take(d_weight);
    d_bias_at_ = take(d_bias);
    if (!direct_) {
      const bool several = block_ < batch_;
      d_weight_sum_at_ = several ? take(d_weight) : d_weight_at_;
      d_bias_sum_at_ = several ? take(d_bias) : d_bias_at_;
      src_at_ = take(4 * block_ * src_.shape.elements());
      dst_at_ = take(4 * block_ * dst_.shape.elements());
      d_src_at_ = take(d_src_ ? 4 * block_ * src_.shape.elements() : 0);
    }
    scratchpad_at_ = take(product_->scratchpad_bytes());
    memory.scratch(std::max(end, direct_ ? 0 : 4 * weights_));
  }

  void forward_direct(const Run& run) {
    product_->forward();
    if (!relu_) return;
    std::byte* dst = run.memory.at(dst_.buffer);
    const std::int64_t size = bytes_of(dst_.storage);
    parallel_parts(run.threads(), batch_ * dst_.shape.elements(), 16, [&](int, Part part) {
      run.typed(dst_.storage).relu(dst + part.begin * size, dst + part.begin * size, part.size());
    });
  }

  void backward_direct(const Run& run) {
    product_->backward_d_weight();
    const float* d_weight = reinterpret_cast<const float*>(run.memory.scratch + d_weight_at_);
    product_->unpack_gradient(d_weight, run.gradients + weight_at_);
    if (bias_at_ >= 0)
      std::memcpy(run.gradients + bias_at_, run.memory.scratch + d_bias_at_,
                  sizeof(float) * static_cast<std::size_t>(dst_.shape.channels));
    if (d_src_) product_->backward_d_src();
  }

  // ---- in blocks. The last block may be short: its float copies then end in old samples, whose results are
  // ignored and whose gradients are set to zero.

  [[nodiscard]] int samples_at(int first) const { return std::min(block_, batch_ - first); }

  /// Stored values of `samples` samples from `first` on -> float copies at `scratch_at`.
  void to_float(const Run& run, const Value& value, const void* stored, int first, int samples,
                std::int64_t scratch_at) const {
    const std::int64_t elements = value.shape.elements();
    const std::byte* from =
        static_cast<const std::byte*>(stored) + first * elements * bytes_of(value.storage);
    float* to = reinterpret_cast<float*>(run.memory.scratch + scratch_at);
    parallel_parts(run.threads(), samples * elements, 16, [&](int, Part part) {
      run.typed(value.storage)
          .to_float(from + part.begin * bytes_of(value.storage), to + part.begin, part.size());
    });
  }

  void from_float(const Run& run, const Value& value, void* stored, int first, int samples,
                  std::int64_t scratch_at, bool relu) const {
    const std::int64_t elements = value.shape.elements();
    std::byte* to = static_cast<std::byte*>(stored) + first * elements * bytes_of(value.storage);
    const float* from = reinterpret_cast<const float*>(run.memory.scratch + scratch_at);
    parallel_parts(run.threads(), samples * elements, 16, [&](int, Part part) {
      run.typed(value.storage)
          .from_float(from + part.begin, to + part.begin * bytes_of(value.storage), relu, part.size());
    });
  }

  void forward_in_blocks(const Run& run) {
    for (int first = 0; first < batch_; first += block_) {
      const int samples = samples_at(first);
      to_float(run, src_, run.memory.at(src_.buffer), first, samples, src_at_);
      product_->forward();
      from_float(run, dst_, run.memory.at(dst_.buffer), first, samples, dst_at_, relu_);
    }
  }

  void backward_in_blocks(const Run& run) {
    Value d_dst = dst_;
    d_dst.storage = dst_.gradient_storage;
    for (int first = 0; first < batch_; first += block_) {
      const int samples = samples_at(first);
      to_float(run, src_, run.memory.at(src_.buffer), first, samples, src_at_);
      to_float(run, d_dst, run.memory.at(dst_.gradient.front()), first, samples, dst_at_);
      const std::int64_t d_dst_bytes = 4 * dst_.shape.elements();
      clear(run, dst_at_ + samples * d_dst_bytes, (block_ - samples) * d_dst_bytes);
      product_->backward_d_weight();
      add_up(run, first == 0);
      if (d_src_) {
        product_->backward_d_src();
        from_float(run, src_, run.memory.at(d_src_), first, samples, d_src_at_, false);
      }
    }
    const float* sum = reinterpret_cast<const float*>(run.memory.scratch + d_weight_sum_at_);
    product_->unpack_gradient(sum, run.gradients + weight_at_);
    if (bias_at_ >= 0)
      std::memcpy(run.gradients + bias_at_, run.memory.scratch + d_bias_sum_at_,
                  sizeof(float) * static_cast<std::size_t>(dst_.shape.channels));
  }

  static void clear(const Run& run, std::int64_t at, std::int64_t bytes) {
    std::memset(run.memory.scratch + at, 0, static_cast<std::size_t>(bytes));
  }

  /// Adds a block's weight gradients (and d_bias behind them) to the sums.
  void add_up(const Run& run, bool is_first) const {
    const std::int64_t bytes = d_weight_sum_at_ - d_weight_at_;
    if (bytes == 0) return;  // there is one block only
    std::byte* from = run.memory.scratch + d_weight_at_;
    std::byte* to = run.memory.scratch + d_weight_sum_at_;
    parallel_parts(run.threads(), bytes / 4, 16, [&](int, Part part) {
      const auto* src = reinterpret_cast<const float*>(from) + part.begin;
      auto* dst = reinterpret_cast<float*>(to) + part.begin;
      if (is_first) {
        std::memcpy(dst, src, sizeof(float) * static_cast<std::size_t>(part.size()));
      } else {
        run.kernels.accumulate(src, dst, part.size());
      }
    });
  }

  const std::string name_;
  const Value& src_;
  const Value& dst_;
  const bool relu_;
  const BufferId d_src_;
  const int batch_;
  const std::int64_t weight_at_, bias_at_, weights_;
  const bool direct_;
  const int block_;
  const std::unique_ptr<Product> product_;
  BufferId packed_forward_, packed_backward_;
  std::int64_t d_weight_at_ = 0, d_weight_sum_at_ = 0, d_bias_at_ = 0, d_bias_sum_at_ = 0;
  std::int64_t src_at_ = 0, dst_at_ = 0, d_src_at_ = 0, scratchpad_at_ = 0;
};

}  // namespace

std::unique_ptr<Step> make_product_step(const Site& site, const Value& src, const Value& dst, bool relu,
                                        BufferId d_src) {
  return std::make_unique<ProductStep>(site, src, dst, relu, d_src);
}

}  // namespace paceline::engine::cpu

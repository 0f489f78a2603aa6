// Max, average and global average pooling.

#include "base/error.h"
#include "engine/cpu/ops/factories.h"
#include "engine/cpu/parallel.h"

namespace paceline::engine::cpu {
namespace {

template <typename Pool>
PoolShape pool_shape(const Pool& pool, const Value& src, const Value& dst) {
  return {.channels = src.shape.channels,
          .height = src.shape.height,
          .width = src.shape.width,
          .out_height = dst.shape.height,
          .out_width = dst.shape.width,
          .kernel = pool.kernel,
          .stride = pool.stride,
          .padding = pool.padding};
}

class MaxPoolStep final : public Step {
 public:
  MaxPoolStep(const Site& site, const Value& src, const Value& dst, BufferId d_src)
      : name_(site.op().name),
        src_(src),
        dst_(dst),
        d_src_(d_src),
        shape_(pool_shape(*site.op().as<graph::MaxPool>(), src, dst)) {
    if (shape_.kernel > kLargestKernel)
      base::fail(
          base::ErrorKind::usage,
          "max pool '{}': the kernel must be at most {} on the cpu engine, but is {}; use a smaller one "
          "or global pooling",
          name_, kLargestKernel, shape_.kernel);
    if (d_src_)
      winner_ =
          site.memory.live(site.options.batch * dst.shape.elements(), site.forward_at, site.backward_at);
  }
  void forward(Run& run) override {
    parallel_ranges(run.pool, std::int64_t{1} * run.options.batch * shape_.out_height,
                    least_of(std::int64_t{1} * shape_.out_width * shape_.channels), [&](int, Range part) {
                      run.typed(src_.storage)
                          .max_pool(run.memory.at(src_.buffer), run.memory.at(dst_.buffer),
                                    run.training ? run.memory.at<std::uint8_t>(winner_) : nullptr,
                                    src_.gradient_comes_masked, shape_, part.begin, part.end);
                    });
  }
  void backward(Run& run) override {
    if (!d_src_) return;
    const void* d_dst = merged_gradient(run, dst_);
    parallel_ranges(run.pool, std::int64_t{1} * run.options.batch * shape_.height,
                    least_of(std::int64_t{1} * shape_.width * shape_.channels), [&](int, Range part) {
                      run.typed(dst_.gradient_storage)
                          .max_pool_backward(d_dst, run.memory.at<std::uint8_t>(winner_),
                                             run.memory.at(d_src_), shape_, part.begin, part.end);
                    });
  }
  /// Windows whose best is not positive have no winner.
  [[nodiscard]] Masking masking() const override {
    return shape_.kernel < kLargestKernel ? Masking::on_the_way : Masking::none;
  }
  void describe(const Run& run, std::vector<KernelChoice>& choices) const override {
    choices.push_back(own_kernel(run, name_));
  }

 private:
  static constexpr int kLargestKernel = 16;  // so that a tap's number fits one byte
  const std::string name_;
  const Value& src_;
  const Value& dst_;
  const BufferId d_src_;
  const PoolShape shape_;
  BufferId winner_;
};

/// Rows of d_src that were just written, where a ReLU in front wants them masked.
void mask_rows(const Run& run, const Value& src, BufferId d_src, Range rows) {
  if (!src.gradient_comes_masked) return;
  const std::int64_t row = std::int64_t{1} * src.shape.width * src.shape.channels;
  mask_by_relu(run, src, d_src, rows.begin * row, rows.size() * row);
}

class AveragePoolStep final : public Step {
 public:
  AveragePoolStep(const Site& site, const Value& src, const Value& dst, BufferId d_src)
      : name_(site.op().name),
        src_(src),
        dst_(dst),
        d_src_(d_src),
        shape_(pool_shape(*site.op().as<graph::AveragePool>(), src, dst)) {}
  void forward(Run& run) override {
    parallel_ranges(run.pool, std::int64_t{1} * run.options.batch * shape_.out_height,
                    least_of(std::int64_t{1} * shape_.out_width * shape_.channels), [&](int, Range part) {
                      run.typed(src_.storage)
                          .average_pool(run.memory.at(src_.buffer), run.memory.at(dst_.buffer), shape_,
                                        part.begin, part.end);
                    });
  }
  void backward(Run& run) override {
    if (!d_src_) return;
    const void* d_dst = merged_gradient(run, dst_);
    parallel_ranges(run.pool, std::int64_t{1} * run.options.batch * shape_.height,
                    least_of(std::int64_t{1} * shape_.width * shape_.channels), [&](int, Range part) {
                      run.typed(dst_.gradient_storage)
                          .average_pool_backward(d_dst, run.memory.at(d_src_), shape_, part.begin, part.end);
                      mask_rows(run, src_, d_src_, part);
                    });
  }
  [[nodiscard]] Masking masking() const override { return Masking::by_value; }
  void describe(const Run& run, std::vector<KernelChoice>& choices) const override {
    choices.push_back(own_kernel(run, name_));
  }

 private:
  const std::string name_;
  const Value& src_;
  const Value& dst_;
  const BufferId d_src_;
  const PoolShape shape_;
};

class GlobalPoolStep final : public Step {
 public:
  GlobalPoolStep(const Site& site, const Value& src, const Value& dst, BufferId d_src)
      : name_(site.op().name), src_(src), dst_(dst), d_src_(d_src) {}
  void forward(Run& run) override {
    parallel_ranges(run.pool, run.options.batch, least_of(src_.shape.elements()), [&](int, Range part) {
      run.typed(src_.storage)
          .global_pool(run.memory.at(src_.buffer), run.memory.at(dst_.buffer), src_.pixels(),
                       src_.shape.channels, part.begin, part.end);
    });
  }
  void backward(Run& run) override {
    if (!d_src_) return;
    const void* d_dst = merged_gradient(run, dst_);
    parallel_ranges(run.pool, run.options.batch, least_of(src_.shape.elements()), [&](int, Range part) {
      run.typed(dst_.gradient_storage)
          .global_pool_backward(d_dst, run.memory.at(d_src_), src_.pixels(), src_.shape.channels, part.begin,
                                part.end);
      if (src_.gradient_comes_masked)
        mask_by_relu(run, src_, d_src_, part.begin * src_.shape.elements(),
                     part.size() * src_.shape.elements());
    });
  }
  [[nodiscard]] Masking masking() const override { return Masking::by_value; }
  void describe(const Run& run, std::vector<KernelChoice>& choices) const override {
    choices.push_back(own_kernel(run, name_));
  }

 private:
  const std::string name_;
  const Value& src_;
  const Value& dst_;
  const BufferId d_src_;
};

}  // namespace

std::unique_ptr<Step> make_max_pool_step(const Site& site, const Value& src, const Value& dst,
                                         BufferId d_src) {
  return std::make_unique<MaxPoolStep>(site, src, dst, d_src);
}
std::unique_ptr<Step> make_average_pool_step(const Site& site, const Value& src, const Value& dst,
                                             BufferId d_src) {
  return std::make_unique<AveragePoolStep>(site, src, dst, d_src);
}
std::unique_ptr<Step> make_global_pool_step(const Site& site, const Value& src, const Value& dst,
                                            BufferId d_src) {
  return std::make_unique<GlobalPoolStep>(site, src, dst, d_src);
}

}  // namespace paceline::engine::cpu

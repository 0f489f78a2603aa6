// Compiled position and class token. Their parameters' gradients are sums over samples: over those of a
// shard in their order, over shards in the tree.

#include "engine/cuda/kernels/tokens.h"

#include "engine/cuda/ops/factories.h"
#include "engine/cuda/ops/shard_sum.h"

namespace paceline::engine::cuda {
namespace {

/// A weight for each of the first `places` places of the output, [places][channels].
class TokenWeight {
 public:
  TokenWeight(const OpArguments& a, int places)
      : dst_(a.dst),
        places_(places),
        at_(a.build.parameter(0)),
        learns_(a.build.learns()),
        shards_(a.build.shards()),
        shard_sum_(shards_, elements()) {
    if (learns_) a.build.memory.scratch(shard_sum_.bytes());
  }
  [[nodiscard]] bool learns() const { return learns_; }
  [[nodiscard]] const float* of(const ExecContext& exec) const { return exec.weights + at_; }
  void clear_gradient(const ExecContext& exec) const { exec.clear_gradient(at_, elements()); }
  void sum_gradient(const ExecContext& exec, const void* d_dst) const {
    const int samples = exec.options.batch / shards_;
    const auto sum_shard = [&](int shard, const auto& to) {
      with_storage(exec.options.precision, [&]<typename T>(T) {
        exec.launch(SumSamples<T>{
            .samples = samples,
            .stride = dst_.elements(),
            .places = places_,
            .channels = dst_.channels(),
            .used = dst_.shape.channels,
            .d_dst = static_cast<const T*>(d_dst) + std::int64_t{1} * shard * samples * dst_.elements(),
            .gradient = to[0]});
      });
    };
    shard_sum_.run(exec, exec.memory.scratch, {exec.gradients + at_}, elements(), sum_shard);
  }

 private:
  [[nodiscard]] std::int64_t elements() const { return std::int64_t{1} * places_ * dst_.shape.channels; }
  const Value& dst_;
  const int places_;
  const std::int64_t at_;
  const bool learns_;
  const int shards_;
  const ShardSum<> shard_sum_;
};

class PositionOp final : public KernelOp {
 public:
  explicit PositionOp(const OpArguments& a) : KernelOp(a), weight_(a, dst_.pixels()) {}

  void forward(ExecContext& exec) override {
    with_storage(exec.options.precision, [&]<typename T>(T) {
      exec.launch(AddPosition<T>{.samples = exec.options.batch,
                                 .places = dst_.pixels(),
                                 .channels = dst_.channels(),
                                 .used = dst_.shape.channels,
                                 .src = exec.memory.at<T>(src_.buffer),
                                 .weight = weight_.of(exec),
                                 .dst = exec.memory.at<T>(dst_.buffer)});
    });
  }
  void backward(ExecContext& exec) override {
    if (!weight_.learns()) weight_.clear_gradient(exec);
    if (!weight_.learns() && !d_src_) return;
    void* d_dst = merged_gradient(exec, dst_);
    if (weight_.learns()) weight_.sum_gradient(exec, d_dst);
    exec.copy(dst_, d_dst, exec.memory.at(d_src_));
  }

 private:
  const TokenWeight weight_;
};

class ClassTokenOp final : public KernelOp {
 public:
  explicit ClassTokenOp(const OpArguments& a) : KernelOp(a), weight_(a, 1) {}

  void forward(ExecContext& exec) override {
    with_storage(exec.options.precision, [&]<typename T>(T) {
      exec.launch(PutToken<T>{.samples = exec.options.batch,
                              .places = src_.pixels(),
                              .channels = src_.channels(),
                              .used = src_.shape.channels,
                              .src = exec.memory.at<T>(src_.buffer),
                              .weight = weight_.of(exec),
                              .dst = exec.memory.at<T>(dst_.buffer)});
    });
  }
  void backward(ExecContext& exec) override {
    if (!weight_.learns()) weight_.clear_gradient(exec);
    if (!weight_.learns() && !d_src_) return;
    const void* d_dst = merged_gradient(exec, dst_);
    if (weight_.learns()) weight_.sum_gradient(exec, d_dst);
    if (!d_src_) return;
    with_storage(exec.options.precision, [&]<typename T>(T) {
      exec.launch(DropToken<T>{.samples = exec.options.batch,
                               .places = src_.pixels(),
                               .channels = src_.channels(),
                               .d_dst = static_cast<const T*>(d_dst),
                               .d_src = exec.memory.at<T>(d_src_)});
    });
  }

 private:
  const TokenWeight weight_;
};

}  // namespace

std::unique_ptr<CompiledOp> make_op(const graph::Position&, const OpArguments& a) {
  return std::make_unique<PositionOp>(a);
}
std::unique_ptr<CompiledOp> make_op(const graph::ClassToken&, const OpArguments& a) {
  return std::make_unique<ClassTokenOp>(a);
}

}  // namespace paceline::engine::cuda

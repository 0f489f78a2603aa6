// Compiled position and class token. Their parameters' gradients are sums over samples: over those of a
// shard in their order, over shards in the tree.

#include "engine/cuda/kernels/tokens.h"

#include "engine/cuda/ops/factories.h"
#include "engine/cuda/ops/shard_sum.h"
#include "graph/ops.h"

namespace paceline::engine::cuda {
namespace {

/// A weight for each of the first `places` places of the output, [places][channels].
class TokenWeight {
 public:
  TokenWeight(const OpArguments& a, int places)
      : dst_(a.dst),
        places_(places),
        at_(a.build.parameter(0)),
        learns_(graph::learns(a.build.graph, a.build.node)),
        shards_(a.build.options.shard > 0 ? a.build.options.batch / a.build.options.shard : 1),
        shard_sum_(shards_, elements()) {
    if (learns_ && shards_ > 1) a.build.memory.scratch(shard_sum_.bytes());
  }
  [[nodiscard]] bool learns() const { return learns_; }
  [[nodiscard]] const float* of(const ExecContext& exec) const { return exec.weights + at_; }
  void clear_gradient(const ExecContext& exec) const {
    exec.runtime.fill_bytes(exec.compute, exec.gradients + at_, 0, static_cast<std::size_t>(4 * elements()));
  }
  void sum_gradient(const ExecContext& exec, const void* d_dst) const {
    const int samples = exec.options.batch / shards_;
    const auto sum_shard = [&](int shard, float* to) {
      with_storage(exec.options.precision, [&]<typename T>(T) {
        exec.launch(SumSamples<T>{
            .samples = samples,
            .stride = dst_.elements(),
            .places = places_,
            .channels = dst_.channels(),
            .used = dst_.shape.channels,
            .d_dst = static_cast<const T*>(d_dst) + std::int64_t{1} * shard * samples * dst_.elements(),
            .gradient = to});
      });
    };
    float* const gradient = exec.gradients + at_;
    if (shards_ == 1) return sum_shard(0, gradient);
    const float* sum = shard_sum_.run(exec, reinterpret_cast<float*>(exec.memory.scratch), sum_shard);
    exec.launch(ArrayCopy{.src = sum, .dst = gradient, .count = elements()});
  }

 private:
  [[nodiscard]] std::int64_t elements() const { return std::int64_t{1} * places_ * dst_.shape.channels; }
  const Value& dst_;
  const int places_;
  const std::int64_t at_;
  const bool learns_;
  const int shards_;
  const ShardSum shard_sum_;
};

class PositionOp final : public CompiledOp {
 public:
  explicit PositionOp(const OpArguments& a)
      : name_(a.build.op().name),
        src_(*a.src[0]),
        dst_(a.dst),
        d_src_(a.d_src[0]),
        weight_(a, dst_.pixels()) {}

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
    void* d_src = exec.memory.at(d_src_);
    if (d_src != nullptr && d_src != d_dst)
      exec.runtime.copy_on_device(
          exec.compute, d_src, d_dst,
          static_cast<std::size_t>(exec.options.batch * dst_.elements() * bytes_of(exec.options.precision)));
  }
  void describe(std::vector<KernelChoice>& choices) const override { choices.push_back(own_kernel(name_)); }

 private:
  const std::string name_;
  const Value& src_;
  const Value& dst_;
  const BufferId d_src_;
  const TokenWeight weight_;
};

class ClassTokenOp final : public CompiledOp {
 public:
  explicit ClassTokenOp(const OpArguments& a)
      : name_(a.build.op().name), src_(*a.src[0]), dst_(a.dst), d_src_(a.d_src[0]), weight_(a, 1) {}

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
  void describe(std::vector<KernelChoice>& choices) const override { choices.push_back(own_kernel(name_)); }

 private:
  const std::string name_;
  const Value& src_;
  const Value& dst_;
  const BufferId d_src_;
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

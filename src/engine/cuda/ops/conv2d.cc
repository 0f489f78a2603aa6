// Convolutions and dense layers, with the bias and the ReLU after them.
//
// A dense layer is computed as a 1x1 convolution of one pixel (conv_problem.h). With shards (CompileOptions)
// the convolutions are made for the samples of one shard and run once for each shard, so that their bits do
// not depend on the number of shards.

#include <algorithm>

#include "engine/cuda/conv_problem.h"
#include "engine/cuda/kernels/columns.h"
#include "engine/cuda/kernels/elementwise.h"
#include "engine/cuda/kernels/kernel.h"
#include "engine/cuda/ops/factories.h"
#include "engine/cuda/ops/shard_sum.h"

namespace paceline::engine::cuda {
namespace {

/// A Conv2d has kernel height * width taps; a Dense layer has one for each pixel that it flattens. The input
/// channels of a group are not padded (conv_problem.h).
WeightShape weight_shape(const graph::Node& node, const Value& src, const Value& dst) {
  const auto* conv = node.as<graph::Conv2d>();
  const auto* dense = node.as<graph::Dense>();
  const int groups = conv != nullptr ? conv->groups : 1;
  return {.outs = dst.shape.channels,
          .padded_outs = dst.channels(),
          .ins = groups == 1 ? src.shape.channels : src.shape.channels / groups,
          .padded_ins = groups == 1 ? src.channels() : src.shape.channels / groups,
          .taps = conv != nullptr  ? static_cast<int>(conv->kernel.product())
                  : dense->flatten ? src.pixels()
                                   : 1};
}

/// The algorithm in `options.algorithms` for `problem`; empty if there is none, so that the default applies.
std::string algorithm_for(const CompileOptions& options, const ConvProblem& problem) {
  if (options.algorithms == nullptr) return {};
  const auto found = options.algorithms->find(describe(problem));
  return found == options.algorithms->end() ? std::string() : found->second;
}

class Conv2dOp final : public KernelOp {
 public:
  explicit Conv2dOp(const OpArguments& a)
      : KernelOp(a),
        relu_(a.group.relu),
        learns_(a.build.learns()),
        weight_(weight_shape(a.build.op(), src_, dst_)),
        weight_at_(a.build.parameter(0)),
        bias_at_(a.build.parameter(1)),
        shards_(a.build.shards()),
        samples_(a.build.options.batch / shards_),
        weight_sum_(shards_, weight_.elements()),
        bias_sum_(shards_, dst_.channels()),
        columns_(Columns::for_sums(std::int64_t{1} * samples_ * dst_.pixels(), 1, dst_.channels())) {
    const auto make = [&](ConvDirection direction) {
      const ConvProblem problem =
          conv_problem(a.build.graph, a.build.op(), samples_, a.build.options.precision, direction);
      check_operands(problem, samples_ * src_.elements(), weight_.padded_elements(),
                     samples_ * dst_.elements());
      auto convolution = a.build.runtime.make_convolution(problem, algorithm_for(a.build.options, problem));
      const auto passed_over = convolution->passed_over();
      choices_.push_back({.problem = problem,
                          .algorithm = convolution->algorithm(),
                          .passed_over = {passed_over.begin(), passed_over.end()}});
      return convolution;
    };
    const std::int64_t size = bytes_of(a.build.options.precision);
    packed_ = a.build.memory.kept(weight_.padded_elements() * size);
    forward_ = make(ConvDirection::forward);
    if (d_src_) backward_data_ = make(ConvDirection::backward_data);
    if (learns_) backward_weights_ = make(ConvDirection::backward_weights);
    plan_scratch(a.build.memory, size);
  }

  [[nodiscard]] std::optional<LayerWeight> weight() const override {
    return LayerWeight{.offset = weight_at_, .packed = packed_, .shape = weight_};
  }

  void forward(ExecContext& exec) override {
    const Precision storage = exec.options.precision;
    for (int shard = 0; shard < shards_; ++shard) {
      const int first = shard * samples_;
      if (first >= exec.samples) break;  // short evaluation: the rest is ignored
      forward_->run(exec.compute, operands(exec, first, exec.memory.at(src_.buffer),
                                           exec.memory.at(dst_.buffer), exec.memory.at(packed_)));
    }
    with_storage(storage, [&]<typename T>(T) {
      T* dst = exec.memory.at<T>(dst_.buffer);
      if (bias_at_ >= 0)
        exec.launch(BiasAdd<T>{.columns = Columns::for_rows(
                                   std::int64_t{1} * exec.options.batch * dst_.pixels(), 1, dst_.channels()),
                               .src = dst,
                               .dst = dst,
                               .bias = exec.weights + bias_at_,
                               .used = dst_.shape.channels,
                               .relu = relu_});
      else if (relu_)
        exec.launch(Relu<T>{.src = dst, .dst = dst, .vectors = exec.vectors(dst_)});
    });
  }

  void backward(ExecContext& exec) override {
    if (!learns_) {
      exec.clear_gradient(weight_at_, weight_.elements());
      exec.clear_gradient(bias_at_, dst_.shape.channels);
    }
    if (!learns_ && !d_src_) return;  // the layer is frozen, and so is everything before it
    void* d_dst = merged_gradient(exec, dst_);
    const bool has_bias_gradient = learns_ && bias_at_ >= 0;
    if (has_bias_gradient)
      sum_bias_gradient(exec, d_dst);
    else if (relu_)
      mask_by_relu(exec, dst_, d_dst);
    if (learns_) sum_weight_gradient(exec, d_dst);
    if (!d_src_) return;
    for (int shard = 0; shard < shards_; ++shard)
      backward_data_->run(exec.compute, operands(exec, shard * samples_, exec.memory.at(d_src_), d_dst,
                                                 exec.memory.at(packed_)));
  }

  void list(std::vector<ConvChoice>& choices) const override {
    choices.insert(choices.end(), choices_.begin(), choices_.end());
  }

  void describe(std::vector<KernelChoice>& choices) const override {
    for (const ConvChoice& one : choices_)
      choices.push_back(
          {.op = name_ + " " + name_of(one.problem.direction), .implementation = one.algorithm});
  }

 private:
  /// Scratch: [workspace][d_weight of a shard, as stored][sum over shards, fp32][bias' partial sums][its
  /// sum].
  void plan_scratch(MemoryRequests& memory, std::int64_t size) {
    std::size_t workspace = 0;
    for (const auto* convolution : {&forward_, &backward_data_, &backward_weights_})
      if (*convolution != nullptr) workspace = std::max(workspace, (*convolution)->workspace_bytes());
    std::int64_t end = 0;
    const auto take = [&](std::int64_t bytes) {
      const std::int64_t at = end;
      end += (bytes + 255) / 256 * 256;  // libraries expect an alignment of 256 bytes
      return at;
    };
    take(static_cast<std::int64_t>(workspace));
    if (learns_) {
      d_weight_at_ = take(weight_.padded_elements() * size);
      weight_sum_at_ = take(weight_sum_.bytes());
      partial_at_ = take(bias_at_ >= 0 ? std::int64_t{8} * columns_.row_blocks * dst_.channels() : 0);
      bias_sum_at_ = take(bias_at_ >= 0 ? bias_sum_.bytes() : 0);
    }
    memory.scratch(end);
  }

  /// The operands from sample `first` on.
  [[nodiscard]] ConvOperands operands(const ExecContext& exec, std::int64_t first, void* src, void* dst,
                                      void* weight) const {
    const Precision storage = exec.options.precision;
    return {.src = after_samples(src, first, src_.elements(), storage),
            .dst = after_samples(dst, first, dst_.elements(), storage),
            .weight = weight,
            .workspace = exec.memory.scratch};
  }

  /// Enqueues the bias gradient; also masks d_dst by the ReLU.
  void sum_bias_gradient(const ExecContext& exec, void* d_dst) const {
    auto* partial = reinterpret_cast<double*>(exec.memory.scratch + partial_at_);
    const auto sum_shard = [&](int shard, const auto& to) {
      with_storage(exec.options.precision, [&]<typename T>(T) {
        const std::int64_t first = shard * samples_ * dst_.elements();
        T* d = static_cast<T*>(d_dst) + first;
        exec.launch(BiasGradientSums<T>{.columns = columns_,
                                        .d_dst = d,
                                        .dst = relu_ ? exec.memory.at<T>(dst_.buffer) + first : nullptr,
                                        .d_masked = relu_ ? d : nullptr,
                                        .partial = partial});
      });
      exec.launch(BiasGradient{.fold = {.partial = partial,
                                        .groups = 1,
                                        .parts = columns_.row_blocks,
                                        .channels = dst_.channels()},
                               .used = dst_.shape.channels,
                               .d_bias = to[0],
                               .stride = 0});
    };
    bias_sum_.run(exec, exec.memory.scratch + bias_sum_at_, {exec.gradients + bias_at_}, dst_.shape.channels,
                  sum_shard);
  }

  void sum_weight_gradient(const ExecContext& exec, void* d_dst) const {
    std::byte* d_weight = exec.memory.scratch + d_weight_at_;
    const auto sum_shard = [&](int shard, const auto& to) {
      backward_weights_->run(exec.compute,
                             operands(exec, shard * samples_, exec.memory.at(src_.buffer), d_dst, d_weight));
      with_storage(exec.options.precision, [&]<typename T>(T) {
        exec.launch(UnpackGradient<T>{
            .src = reinterpret_cast<const T*>(d_weight), .gradient = to[0], .shape = weight_});
      });
    };
    weight_sum_.run(exec, exec.memory.scratch + weight_sum_at_, {exec.gradients + weight_at_},
                    weight_.elements(), sum_shard);
  }

  const bool relu_;
  const bool learns_;
  const WeightShape weight_;
  const std::int64_t weight_at_, bias_at_;  ///< in the flat arrays; -1: no bias
  const int shards_;
  const std::int64_t samples_;  ///< of a shard
  const ShardSum<> weight_sum_, bias_sum_;
  const Columns columns_;  ///< for the bias: the rows of a shard's output
  BufferId packed_;
  std::unique_ptr<Convolution> forward_, backward_data_, backward_weights_;
  std::vector<ConvChoice> choices_;
  std::int64_t d_weight_at_ = 0, weight_sum_at_ = 0, partial_at_ = 0, bias_sum_at_ = 0;
};

}  // namespace

std::unique_ptr<CompiledOp> make_op(const graph::Conv2d&, const OpArguments& a) {
  return std::make_unique<Conv2dOp>(a);
}
std::unique_ptr<CompiledOp> make_op(const graph::Dense&, const OpArguments& a) {
  return std::make_unique<Conv2dOp>(a);
}

}  // namespace paceline::engine::cuda

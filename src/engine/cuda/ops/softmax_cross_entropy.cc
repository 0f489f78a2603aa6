// Softmax cross-entropy with label smoothing. The result of a pass for the host is written to
// ExecContext::loss.

#include "engine/cuda/kernels/softmax_cross_entropy.h"

#include <algorithm>
#include <numeric>

#include "engine/cuda/ops/factories.h"

namespace paceline::engine::cuda {
namespace {

class SoftmaxCrossEntropyOp final : public CompiledOp {
 public:
  SoftmaxCrossEntropyOp(const graph::SoftmaxCrossEntropy& loss, const OpArguments& a)
      : smoothing_(loss.label_smoothing),
        weights_(loss.class_weights),
        sum_of_weights_(std::accumulate(weights_.begin(), weights_.end(), 0.0)),
        classes_(static_cast<int>(a.src[0]->shape.elements())),
        logits_(*a.src[0]),
        d_logits_(a.d_src[0]) {
    const std::int64_t batch = a.build.options.batch;
    if (d_logits_)
      probabilities_ = a.build.memory.live(4 * batch * classes_, a.build.forward_at, a.build.backward_at);
    a.build.memory.scratch(batch * static_cast<std::int64_t>(sizeof(SampleLoss)));
    if (weights_.empty()) return;
    const auto bytes = static_cast<std::int64_t>(weights_.size() * sizeof(double));
    weights_at_ = a.build.memory.kept(bytes);
    a.build.pinned_bytes = std::max(a.build.pinned_bytes, bytes);
  }

  void start(ExecContext& exec) override {
    if (weights_.empty()) return;
    std::copy(weights_.begin(), weights_.end(), exec.pinned);
    exec.runtime.copy_to_device(exec.compute, exec.memory.at<double>(weights_at_), exec.pinned,
                                weights_.size() * sizeof(double));
  }

  void forward(ExecContext& exec) override {
    auto* losses = reinterpret_cast<SampleLoss*>(exec.memory.scratch);
    const int samples = exec.samples / exec.views;
    with_storage(exec.options.precision, [&]<typename T>(T) {
      exec.launch(
          SoftmaxLoss<T>{.logits = exec.memory.at<T>(logits_.buffer),
                         .labels = exec.labels,
                         .probabilities = exec.training ? exec.memory.at<float>(probabilities_) : nullptr,
                         .losses = losses,
                         .samples = samples,
                         .views = exec.views,
                         .classes = classes_,
                         .padded = logits_.channels(),
                         .label_smoothing = smoothing_,
                         .class_weights = exec.training ? weights(exec) : nullptr,
                         .sum_of_weights = sum_of_weights_,
                         .second_labels = exec.training ? exec.second_labels : nullptr});
    });
    exec.launch(LossFold{.losses = losses, .samples = samples, .result = exec.loss});
  }

  void backward(ExecContext& exec) override {
    if (!d_logits_) return;
    with_storage(exec.options.precision, [&]<typename T>(T) {
      exec.launch(SoftmaxBackward<T>{.probabilities = exec.memory.at<float>(probabilities_),
                                     .labels = exec.labels,
                                     .d_logits = exec.memory.at<T>(d_logits_),
                                     .step = exec.numbers,
                                     .samples = exec.options.batch,
                                     .classes = classes_,
                                     .padded = logits_.channels(),
                                     .label_smoothing = smoothing_,
                                     .class_weights = weights(exec),
                                     .sum_of_weights = sum_of_weights_,
                                     .second_labels = exec.second_labels,
                                     .loss_scale = exec.loss_scale});
    });
  }

  void describe(std::vector<KernelChoice>&) const override {}

 private:
  [[nodiscard]] const double* weights(const ExecContext& exec) const {
    return weights_.empty() ? nullptr : exec.memory.at<double>(weights_at_);
  }

  const double smoothing_;
  const std::vector<double> weights_;  ///< of classes, or empty
  const double sum_of_weights_;
  const int classes_;
  const Value& logits_;
  const BufferId d_logits_;
  BufferId probabilities_;  ///< [batch][classes], live from forward to backward
  BufferId weights_at_;     ///< weights_ on the device
};

}  // namespace

std::unique_ptr<CompiledOp> make_op(const graph::SoftmaxCrossEntropy& op, const OpArguments& a) {
  return std::make_unique<SoftmaxCrossEntropyOp>(op, a);
}

}  // namespace paceline::engine::cuda

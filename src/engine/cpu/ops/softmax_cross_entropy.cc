// Softmax cross-entropy with label smoothing and weights of classes, in double: a batch has few logits, and
// the sums must be accurate.

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"
#include "engine/cpu/ops/factories.h"

namespace paceline::engine::cpu {
namespace {

class SoftmaxCrossEntropyOp final : public CompiledOp {
 public:
  SoftmaxCrossEntropyOp(const BuildContext& build, const Value& logits, BufferId d_logits)
      : smoothing_(build.op().as<graph::SoftmaxCrossEntropy>()->label_smoothing),
        weights_(build.op().as<graph::SoftmaxCrossEntropy>()->class_weights),
        sum_of_weights_(std::accumulate(weights_.begin(), weights_.end(), 0.0)),
        classes_(static_cast<int>(logits.shape.elements())),
        logits_(logits),
        d_logits_(d_logits),
        row_(static_cast<std::size_t>(classes_)) {
    if (d_logits_) labels_.resize(static_cast<std::size_t>(build.options.batch));
  }

  void forward(ExecContext& exec) override {
    exec.sums = {};
    for (int n = 0; n < exec.samples / exec.views; ++n) {
      const std::int32_t label = exec.input.labels[static_cast<std::size_t>(n)];
      if (label < 0 || label >= classes_)
        base::fail(
            base::ErrorKind::data,
            "loss: every label must be in [0, {}), but sample {} of the batch has {}; check the data set "
            "and the model's classes",
            classes_, n, label);
      if (exec.training && d_logits_) labels_[static_cast<std::size_t>(n)] = label;
      read_mean(exec, n);
      if (!exec.logits.empty())
        std::copy(row_.begin(), row_.end(), exec.logits.begin() + std::ptrdiff_t{n} * classes_);
      exec.sums += loss_of(label, exec.training && !weights_.empty());
    }
  }

  void backward(ExecContext& exec) override {
    if (!d_logits_) return;
    const double everywhere = smoothing_ / classes_;
    const bool is_weighted = !weights_.empty();
    for (int n = 0; n < exec.options.batch; ++n) {
      read_row(exec, n);
      const double largest = *std::max_element(row_.begin(), row_.end());
      double total = 0;
      for (double& logit : row_) total += logit = std::exp(logit - largest);
      const std::int32_t label = labels_[static_cast<std::size_t>(n)];
      const double all_targets = is_weighted ? sum_of_targets(label) : 1;
      for (int k = 0; k < classes_; ++k) {
        double target = everywhere + (label == k ? 1 - smoothing_ : 0.0);
        if (is_weighted) target *= weights_[static_cast<std::size_t>(k)];
        const double d =
            (row_[static_cast<std::size_t>(k)] / total * all_targets - target) * exec.input.gradient_scale;
        write_gradient(exec, std::int64_t{1} * n * classes_ + k, static_cast<float>(d));
      }
    }
  }

  void describe(const ExecContext&, std::vector<KernelChoice>&) const override {}

 private:
  void read_row(const ExecContext& exec, int sample) {
    const std::int64_t first = std::int64_t{1} * sample * classes_;
    if (logits_.storage == Storage::f32) {
      std::copy_n(exec.memory.at<float>(logits_.buffer) + first, classes_, row_.begin());
    } else {
      const auto* values = exec.memory.at<base::BFloat16>(logits_.buffer) + first;
      std::transform(values, values + classes_, row_.begin(),
                     [](base::BFloat16 value) { return static_cast<double>(base::to_float(value)); });
    }
  }

  /// Of all views of a sample.
  void read_mean(const ExecContext& exec, int sample) {
    read_row(exec, sample * exec.views);
    if (exec.views == 1) return;
    std::vector<double> sum = row_;
    for (int view = 1; view < exec.views; ++view) {
      read_row(exec, sample * exec.views + view);
      std::transform(row_.begin(), row_.end(), sum.begin(), sum.begin(), std::plus<>());
    }
    std::transform(sum.begin(), sum.end(), row_.begin(), [&](double logit) { return logit / exec.views; });
  }

  void write_gradient(const ExecContext& exec, std::int64_t at, float d) const {
    if (logits_.gradient_storage == Storage::f32) {
      exec.memory.at<float>(d_logits_)[at] = d;
    } else {
      exec.memory.at<base::BFloat16>(d_logits_)[at] = base::to_bf16(d);
    }
  }

  /// Over the classes, each times its weight.
  [[nodiscard]] double sum_of_targets(std::int32_t label) const {
    return (1 - smoothing_) * weights_[static_cast<std::size_t>(label)] +
           smoothing_ * sum_of_weights_ / classes_;
  }

  /// Of the sample in row_; the loss rounded to a multiple of 2^-24 (NaN and infinity stay what they are).
  [[nodiscard]] LossSums loss_of(std::int32_t label, bool is_weighted) const {
    const auto largest = std::max_element(row_.begin(), row_.end());
    double total = 0, shifted_sum = 0;
    for (const double logit : row_) {
      total += std::exp(logit - *largest);
      shifted_sum += logit - *largest;
    }
    const double log_total = std::log(total);
    const double of_label = log_total - (row_[static_cast<std::size_t>(label)] - *largest);
    const double of_all = log_total - shifted_sum / classes_;  // mean of -log p over the classes
    double loss = (1 - smoothing_) * of_label + smoothing_ * of_all;
    if (is_weighted) {
      double weighted_sum = 0;
      for (std::size_t k = 0; k < weights_.size(); ++k) weighted_sum += weights_[k] * (row_[k] - *largest);
      loss = (1 - smoothing_) * weights_[static_cast<std::size_t>(label)] * of_label +
             smoothing_ * (sum_of_weights_ * log_total - weighted_sum) / classes_;
    }
    return {.loss = std::nearbyint(loss * 0x1p24) * 0x1p-24,
            .correct = largest - row_.begin() == label ? 1 : 0,
            .samples = 1};
  }

  const double smoothing_;
  const std::vector<double> weights_;  ///< [classes], or empty
  const double sum_of_weights_;
  const int classes_;
  const Value& logits_;
  const BufferId d_logits_;
  std::vector<std::int32_t> labels_;  ///< of the last forward, for backward
  std::vector<double> row_;           ///< one sample's logits
};

}  // namespace

std::unique_ptr<CompiledOp> make_op(const graph::SoftmaxCrossEntropy&, const OpArguments& a) {
  return std::make_unique<SoftmaxCrossEntropyOp>(a.build, *a.src[0], a.d_src[0]);
}

}  // namespace paceline::engine::cpu

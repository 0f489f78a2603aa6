// Softmax cross-entropy with label smoothing, weights of classes and second labels of mixed images, in
// double: a batch has few logits, and the sums must be accurate.

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

/// The label of a sample, and the second one if it is a mixed image. With weight 0 all results have the bits
/// of the label alone.
struct TargetLabels {
  std::int32_t label = 0, second = 0;
  double weight = 0;  ///< of the second
  [[nodiscard]] std::int32_t heavier() const { return weight > 0.5 ? second : label; }
};

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
    if (d_logits_) targets_.resize(static_cast<std::size_t>(build.options.batch));
  }

  void forward(ExecContext& exec) override {
    exec.sums = {};
    for (int n = 0; n < exec.samples / exec.views; ++n) {
      const TargetLabels target = labels_of(exec, n);
      if (exec.training && d_logits_) targets_[static_cast<std::size_t>(n)] = target;
      read_mean(exec, n);
      if (!exec.logits.empty())
        std::copy(row_.begin(), row_.end(), exec.logits.begin() + std::ptrdiff_t{n} * classes_);
      exec.sums += loss_of(target, exec.training && !weights_.empty());
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
      const TargetLabels& labels = targets_[static_cast<std::size_t>(n)];
      const double all_targets = is_weighted ? sum_of_targets(labels) : 1;
      for (int k = 0; k < classes_; ++k) {
        const double share =
            (labels.label == k ? 1 - labels.weight : 0.0) + (labels.second == k ? labels.weight : 0.0);
        double target = everywhere + (1 - smoothing_) * share;
        if (is_weighted) target *= weights_[static_cast<std::size_t>(k)];
        const double d =
            (row_[static_cast<std::size_t>(k)] / total * all_targets - target) * exec.input.gradient_scale;
        write_gradient(exec, std::int64_t{1} * n * classes_ + k, static_cast<float>(d));
      }
    }
  }

  void describe(const ExecContext&, std::vector<KernelChoice>&) const override {}

 private:
  [[nodiscard]] TargetLabels labels_of(const ExecContext& exec, int n) const {
    const auto at = static_cast<std::size_t>(n);
    TargetLabels target{.label = exec.input.labels[at]};
    if (!exec.input.second_labels.empty()) {
      const base::SecondLabel& second = exec.input.second_labels[at];
      target = {target.label, second.label, static_cast<double>(second.weight)};
    }
    for (const std::int32_t label : {target.label, target.second})
      if (label < 0 || label >= classes_)
        base::fail(
            base::ErrorKind::data,
            "loss: every label must be in [0, {}), but sample {} of the batch has {}; check the data set "
            "and the model's classes",
            classes_, n, label);
    return target;
  }

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
  [[nodiscard]] double sum_of_targets(const TargetLabels& of) const {
    double weight = weights_[static_cast<std::size_t>(of.label)];
    if (of.weight > 0)
      weight = (1 - of.weight) * weight + of.weight * weights_[static_cast<std::size_t>(of.second)];
    return (1 - smoothing_) * weight + smoothing_ * sum_of_weights_ / classes_;
  }

  /// Of the sample in row_; the loss rounded to a multiple of 2^-24 (NaN and infinity stay what they are).
  [[nodiscard]] LossSums loss_of(const TargetLabels& of, bool is_weighted) const {
    const auto largest = std::max_element(row_.begin(), row_.end());
    double total = 0, shifted_sum = 0;
    for (const double logit : row_) {
      total += std::exp(logit - *largest);
      shifted_sum += logit - *largest;
    }
    const double log_total = std::log(total);
    // Of a label that has all of the target, without what smoothing spreads.
    const auto of_label = [&](std::int32_t label) {
      const auto k = static_cast<std::size_t>(label);
      return (1 - smoothing_) * (is_weighted ? weights_[k] : 1.0) * (log_total - (row_[k] - *largest));
    };
    double loss = of_label(of.label);
    if (of.weight > 0) loss = (1 - of.weight) * loss + of.weight * of_label(of.second);
    if (is_weighted) {
      double weighted_sum = 0;
      for (std::size_t k = 0; k < weights_.size(); ++k) weighted_sum += weights_[k] * (row_[k] - *largest);
      loss += smoothing_ * (sum_of_weights_ * log_total - weighted_sum) / classes_;
    } else {
      loss += smoothing_ * (log_total - shifted_sum / classes_);  // mean of -log p over the classes
    }
    return {.loss = std::nearbyint(loss * 0x1p24) * 0x1p-24,
            .correct = largest - row_.begin() == of.heavier() ? 1 : 0,
            .samples = 1};
  }

  const double smoothing_;
  const std::vector<double> weights_;  ///< [classes], or empty
  const double sum_of_weights_;
  const int classes_;
  const Value& logits_;
  const BufferId d_logits_;
  std::vector<TargetLabels> targets_;  ///< of the last forward, for backward
  std::vector<double> row_;            ///< one sample's logits
};

}  // namespace

std::unique_ptr<CompiledOp> make_op(const graph::SoftmaxCrossEntropy&, const OpArguments& a) {
  return std::make_unique<SoftmaxCrossEntropyOp>(a.build, *a.src[0], a.d_src[0]);
}

}  // namespace paceline::engine::cpu

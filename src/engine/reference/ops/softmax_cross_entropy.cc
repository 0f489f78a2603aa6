#include "engine/reference/ops/softmax_cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace paceline::engine::reference {
namespace {
/// To a multiple of 2^-24; NaN and infinity stay what they are.
double rounded(double loss) { return std::nearbyint(loss * 0x1p24) * 0x1p-24; }
}  // namespace

template <typename T>
LossSums softmax_cross_entropy_forward(const OpShapes& shapes, const graph::SoftmaxCrossEntropy& loss,
                                       const T* logits, std::span<const std::int32_t> labels,
                                       T* probabilities, double* exact_loss) {
  const int classes = shapes.src.channels;
  LossSums sums;
  double exact = 0;
  for (int n = 0; n < shapes.batch; ++n, logits += classes, probabilities += classes) {
    const std::int32_t label = labels[static_cast<std::size_t>(n)];
    base::expects(label >= 0 && label < classes, "a label is a class");
    const T* largest = std::max_element(logits, logits + classes);
    double total = 0, logit_sum = 0;
    for (int k = 0; k < classes; ++k) {
      const double shifted = static_cast<double>(logits[k]) - static_cast<double>(*largest);
      logit_sum += shifted;
      total += std::exp(shifted);
    }
    for (int k = 0; k < classes; ++k)
      probabilities[k] =
          static_cast<T>(std::exp(static_cast<double>(logits[k]) - static_cast<double>(*largest)) / total);
    const double log_total = std::log(total);
    const double of_label = log_total - (static_cast<double>(logits[label]) - static_cast<double>(*largest));
    const double of_all = log_total - logit_sum / classes;  // mean of -log p over the classes
    const double value = (1 - loss.label_smoothing) * of_label + loss.label_smoothing * of_all;
    exact += value;
    sums += {.loss = rounded(value), .correct = largest - logits == label ? 1 : 0, .samples = 1};
  }
  if (exact_loss != nullptr) *exact_loss = exact;
  return sums;
}

template <typename T>
void softmax_cross_entropy_backward(const OpShapes& shapes, const graph::SoftmaxCrossEntropy& loss,
                                    const T* probabilities, std::span<const std::int32_t> labels,
                                    double gradient_scale, T* d_logits) {
  const int classes = shapes.src.channels;
  const double everywhere = loss.label_smoothing / classes;
  for (int n = 0; n < shapes.batch; ++n, probabilities += classes, d_logits += classes)
    for (int k = 0; k < classes; ++k) {
      const double target =
          everywhere + (labels[static_cast<std::size_t>(n)] == k ? 1 - loss.label_smoothing : 0.0);
      d_logits[k] += static_cast<T>((static_cast<double>(probabilities[k]) - target) * gradient_scale);
    }
}

#define PACELINE_INSTANTIATE(T)                                                                              \
  template LossSums softmax_cross_entropy_forward(const OpShapes&, const graph::SoftmaxCrossEntropy&,        \
                                                  const T*, std::span<const std::int32_t>, T*, double*);     \
  template void softmax_cross_entropy_backward(const OpShapes&, const graph::SoftmaxCrossEntropy&, const T*, \
                                               std::span<const std::int32_t>, double, T*);
PACELINE_INSTANTIATE(float)
PACELINE_INSTANTIATE(double)

#undef PACELINE_INSTANTIATE
}  // namespace paceline::engine::reference

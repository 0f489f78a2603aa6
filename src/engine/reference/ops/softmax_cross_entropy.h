#pragma once

/// Softmax followed by cross-entropy with label smoothing, as one op.
///
/// With smoothing e and K classes the target is (1 - e) on the label plus e / K on every class, as in
/// PyTorch.
///
/// Shapes   logits, probabilities, d_logits [N, K]

#include <span>

#include "engine/engine.h"
#include "engine/reference/ops/op_shapes.h"

namespace paceline::engine::reference {

/// Returns the sums over the batch; each sample's loss is rounded as LossSums demands. `exact_loss`, unless
/// it is null, receives the sum of the losses without that rounding, for finite differences.
template <typename T>
LossSums softmax_cross_entropy_forward(const OpShapes& shapes, const graph::SoftmaxCrossEntropy& loss,
                                       const T* logits, std::span<const std::int32_t> labels,
                                       T* probabilities, double* exact_loss);

/// d_logits += (probabilities - target) * gradient_scale.
template <typename T>
void softmax_cross_entropy_backward(const OpShapes& shapes, const graph::SoftmaxCrossEntropy& loss,
                                    const T* probabilities, std::span<const std::int32_t> labels,
                                    double gradient_scale, T* d_logits);

}  // namespace paceline::engine::reference

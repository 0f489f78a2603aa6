#pragma once

/// The ops of the reference engine but convolutions and dense layers, as plain loops, in float and double.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/channel_copies.h"
#include "engine/dropout_mask.h"
#include "engine/engine.h"
#include "graph/graph.h"

namespace paceline::engine::reference {

// OpShapes: the sizes that every op of the reference engine gets. Values are [batch][C][H][W], without
// padding.

struct OpShapes {
  int batch = 0;
  graph::Shape src;
  graph::Shape dst;
  [[nodiscard]] std::int64_t src_elements() const { return batch * src.elements(); }
  [[nodiscard]] std::int64_t dst_elements() const { return batch * dst.elements(); }
};

// Batch normalisation of the reference engine. Local, ghost and synchronised batch norm are one computation
// over groups of samples.
//
// Local batch norm has one group, ghost batch norm several. Synchronised batch norm has one group that spans
// the batches of all workers; `reduce` adds their sums. All sums are in double.
//
// Shapes   src, dst [N, C, H, W]; weight, bias [C]

/// How the samples of a batch are grouped.
struct BatchNormGroups {
  int groups = 1;      ///< groups of consecutive samples, all of the same size
  int world_size = 1;  ///< engines whose batches form the group; above 1 only if `groups` is 1
  std::function<void(std::span<double> values)>
      reduce;  ///< sums `values` over those engines; unused if world_size is 1
};

/// The statistics of one forward, which backward and the running statistics need.
struct BatchNormStatistics {
  std::vector<double> mean;               ///< [groups][C]
  std::vector<double> inverse_deviation;  ///< [groups][C]
  std::vector<double> batch_mean;         ///< [C], mean over the groups
  std::vector<double> batch_variance;     ///< [C], unbiased, mean over the groups
};

template <typename T>
void batch_norm_forward(const OpShapes& shapes, const graph::BatchNorm& norm, const BatchNormGroups& groups,
                        const T* src, const T* weight, const T* bias, T* dst,
                        BatchNormStatistics& statistics);

/// Adds to d_src, unless it is null. Overwrites d_weight and d_bias with the sums over this engine's samples.
template <typename T>
void batch_norm_backward(const OpShapes& shapes, const BatchNormGroups& groups,
                         const BatchNormStatistics& statistics, const T* src, const T* weight, const T* d_dst,
                         T* d_src, T* d_weight, T* d_bias);

/// The same of a batch norm that normalised with the running statistics, as a frozen one does.
template <typename T>
void frozen_batch_norm_backward(const OpShapes& shapes, const graph::BatchNorm& norm, const T* src,
                                const T* weight, const T* running_mean, const T* running_var, const T* d_dst,
                                T* d_src, T* d_weight, T* d_bias);

/// Evaluation, and training of a frozen batch norm: uses the running statistics.
template <typename T>
void batch_norm_evaluate(const OpShapes& shapes, const graph::BatchNorm& norm, const T* src, const T* weight,
                         const T* bias, const T* running_mean, const T* running_var, T* dst);

// Layer norm, group norm and learned factors of the reference engine.
//
// Shapes   src, dst [N, C, H, W]; weight, bias [C]

/// The groups of elements of a sample that share a mean and a variance.
struct SampleGroups {
  int channel_groups = 1;  ///< equal groups of channels
  bool by_place = false;   ///< each place is a group of its own, too
  double epsilon = 1e-5;
  static SampleGroups of(const graph::LayerNorm& op) { return {1, true, op.epsilon}; }
  static SampleGroups of(const graph::GroupNorm& op) { return {op.groups, false, op.epsilon}; }
};

/// dst = (src - mean) / sqrt(variance + epsilon) * weight + bias.
template <typename T>
void group_norm_forward(const OpShapes& shapes, const SampleGroups& groups, const T* src, const T* weight,
                        const T* bias, T* dst);
/// Adds to d_src, unless it is null. Overwrites d_weight and d_bias, unless they are null.
template <typename T>
void group_norm_backward(const OpShapes& shapes, const SampleGroups& groups, const T* src, const T* weight,
                         const T* d_dst, T* d_src, T* d_weight, T* d_bias);

/// dst = src * weight of the channel.
template <typename T>
void scale_forward(const OpShapes& shapes, const T* src, const T* weight, T* dst);
/// Adds to d_src, unless it is null. Overwrites d_weight, unless it is null.
template <typename T>
void scale_backward(const OpShapes& shapes, const T* src, const T* weight, const T* d_dst, T* d_src,
                    T* d_weight);

// Dropout of the reference engine: keeps an element with probability 1 - p and scales it by 1 / (1 - p).
// engine/dropout_mask.h decides which elements are kept.
//
// `mask_of(n)` returns the DropoutMask of sample n of the batch.

template <typename T, typename MaskOf>
void dropout_forward(const OpShapes& shapes, const graph::Dropout& dropout, MaskOf mask_of, const T* src,
                     T* dst) {
  const T scale = static_cast<T>(1 / (1 - dropout.probability));
  const std::int64_t elements = shapes.src.elements();
  for (int n = 0; n < shapes.batch; ++n, src += elements, dst += elements)
    mask_of(n).for_each(elements, [&](std::int64_t i, bool kept) { dst[i] = kept ? src[i] * scale : T{0}; });
}

/// d_src += d_dst * scale for the elements that forward kept.
template <typename T, typename MaskOf>
void dropout_backward(const OpShapes& shapes, const graph::Dropout& dropout, MaskOf mask_of, const T* d_dst,
                      T* d_src) {
  const T scale = static_cast<T>(1 / (1 - dropout.probability));
  const std::int64_t elements = shapes.src.elements();
  for (int n = 0; n < shapes.batch; ++n, d_dst += elements, d_src += elements)
    mask_of(n).for_each(elements, [&](std::int64_t i, bool kept) {
      if (kept) d_src[i] += d_dst[i] * scale;
    });
}

// Elementwise ops of the reference engine: sum of two values, ReLU, GELU.
//
// Backward functions add to d_src, since several ops may read one value.

/// dst = left + right, for values of the same shape.
template <typename T>
void add_forward(const OpShapes& shapes, const T* left, const T* right, T* dst);

/// d_src += d_dst. Call it for each of the two inputs.
template <typename T>
void add_backward(const OpShapes& shapes, const T* d_dst, T* d_src);

/// dst = f(src) for an elementwise op (graph/elementwise.h); NaN stays NaN.
template <typename Op, typename T>
void elementwise_forward(const OpShapes& shapes, const T* src, T* dst);

/// d_src += the gradient, a function of d_dst and of what the op's rule keeps: src or dst.
template <typename Op, typename T>
void elementwise_backward(const OpShapes& shapes, const T* kept, const T* d_dst, T* d_src);

/// dst = left * right. Of `pixels` adjacent elements of left, all meet one of right: 1, or a plane's pixels.
template <typename T>
void mul_forward(const OpShapes& shapes, std::int64_t pixels, const T* left, const T* right, T* dst);

/// d_left += d_dst * right, d_right += the sums of d_dst * left over `pixels`; either may be null.
template <typename T>
void mul_backward(const OpShapes& shapes, std::int64_t pixels, const T* left, const T* right, const T* d_dst,
                  T* d_left, T* d_right);

/// One copy of concat, slice or channel_shuffle; `shapes.src` is that of the copy's input.
template <typename T>
void copy_channels(const OpShapes& shapes, const ChannelCopy& copy, const T* src, T* dst);
/// d_src += d_dst for the copied channels.
template <typename T>
void copy_channels_backward(const OpShapes& shapes, const ChannelCopy& copy, const T* d_dst, T* d_src);

/// dst = src with zeros on each side, or less of it.
template <typename T>
void pad_forward(const OpShapes& shapes, const graph::Pad& pad, const T* src, T* dst);
/// d_src += d_dst where the element was kept.
template <typename T>
void pad_backward(const OpShapes& shapes, const graph::Pad& pad, const T* d_dst, T* d_src);

// Pooling of the reference engine: the maximum or the mean of each window, and the mean of each whole plane.
//
// Backward functions add to d_src, since several ops may read one value.
//
// Shapes   src [N, C, H, W], dst and winner [N, C, P, Q]; global pooling: dst [N, C]

/// Padding counts as -infinity; NaN counts as the maximum. `winner` receives, for each window, the index in
/// its plane of the largest element (the first of equal ones, as in PyTorch).
template <typename T>
void max_pool_forward(const OpShapes& shapes, const graph::MaxPool& pool, const T* src, T* dst,
                      std::int32_t* winner);

/// d_src += d_dst at the winners.
template <typename T>
void max_pool_backward(const OpShapes& shapes, const std::int32_t* winner, const T* d_dst, T* d_src);

/// The mean of each window. `pool`: an AveragePool, whose padding is zeros, or an AdaptiveAveragePool.
template <typename Pool, typename T>
void average_pool_forward(const OpShapes& shapes, const Pool& pool, const T* src, T* dst);

/// d_src += d_dst, divided equally among the elements of each window.
template <typename Pool, typename T>
void average_pool_backward(const OpShapes& shapes, const Pool& pool, const T* d_dst, T* d_src);

template <typename T>
void global_average_pool_forward(const OpShapes& shapes, const T* src, T* dst);

/// d_src += d_dst, divided equally among the elements of each plane.
template <typename T>
void global_average_pool_backward(const OpShapes& shapes, const T* d_dst, T* d_src);

// Ops on tokens of the reference engine. A place is a pixel.
//
// Shapes   position: src, dst [N, C, T], weight [T, C]; class_token: src [N, C, T], weight [C],
//          dst [N, C, T + 1]; attention: src [N, 3 C, T], dst [N, C, T]

/// dst = src + weight of the place.
template <typename T>
void position_forward(const OpShapes& shapes, const T* src, const T* weight, T* dst);
/// d_weight += the sum of d_dst over samples.
template <typename T>
void position_backward_weight(const OpShapes& shapes, const T* d_dst, T* d_weight);

/// dst = weight, and behind it the places of src.
template <typename T>
void class_token_forward(const OpShapes& shapes, const T* src, const T* weight, T* dst);
/// Adds to d_src and d_weight; either may be null.
template <typename T>
void class_token_backward(const OpShapes& shapes, const T* d_dst, T* d_src, T* d_weight);

template <typename T>
void attention_forward(const OpShapes& shapes, const graph::Attention& attention, const T* src, T* dst);
/// d_src += the gradient; computes the probabilities again.
template <typename T>
void attention_backward(const OpShapes& shapes, const graph::Attention& attention, const T* src,
                        const T* d_dst, T* d_src);

// Softmax followed by cross-entropy with label smoothing, as one op.
//
// With smoothing e and K classes the target is (1 - e) on the label plus e / K on every class, as in
// PyTorch. A weight of a class multiplies its target, there too: the loss is the sum over the classes of
// target * weight * -log(probability). Nothing is divided by the sum of the weights.
//
// Shapes   logits, probabilities, d_logits [N, K]

/// Returns the sums over the batch; each sample's loss is rounded as LossSums demands. `exact_loss`, unless
/// it is null, receives the sum of the losses without that rounding, for finite differences.
template <typename T>
LossSums softmax_cross_entropy_forward(const OpShapes& shapes, const graph::SoftmaxCrossEntropy& loss,
                                       const T* logits, std::span<const std::int32_t> labels,
                                       T* probabilities, double* exact_loss);

/// d_logits += (probabilities * sum of weighted targets - weighted target) * gradient_scale.
template <typename T>
void softmax_cross_entropy_backward(const OpShapes& shapes, const graph::SoftmaxCrossEntropy& loss,
                                    const T* probabilities, std::span<const std::int32_t> labels,
                                    double gradient_scale, T* d_logits);

}  // namespace paceline::engine::reference

#pragma once

/// Batch normalisation: local, ghost and synchronised are one computation over groups of samples.
///
/// Local has one group, ghost several, synchronised one that spans the batches of all workers: their sums
/// meet in `reduce`. Sums are double throughout. Shapes   src, dst [N, C, H, W]; weight, bias [C]

#include <functional>
#include <span>
#include <vector>

#include "engine/reference/ops/op_shapes.h"

namespace paceline::engine::reference {

/// How the samples of a batch are grouped.
struct BatchNormGroups {
  int groups = 1;      ///< of consecutive samples, equally large
  int world_size = 1;  ///< engines whose batches form one group together; above 1 only with one group
  std::function<void(std::span<double> values)>
      reduce;  ///< sums over those engines; unused when world_size is 1
};

/// What backward and the running statistics need of one forward.
struct BatchNormStatistics {
  std::vector<double> mean;               ///< [groups][C]
  std::vector<double> inverse_deviation;  ///< [groups][C]
  std::vector<double> batch_mean;         ///< [C], mean over groups
  std::vector<double> batch_variance;     ///< [C], unbiased, mean over groups
};

template <typename T>
void batch_norm_forward(const OpShapes& shapes, const graph::BatchNorm& norm, const BatchNormGroups& groups,
                        const T* src, const T* weight, const T* bias, T* dst,
                        BatchNormStatistics& statistics);

/// d_src += ... (unless null); d_weight, d_bias over this engine's samples only.
template <typename T>
void batch_norm_backward(const OpShapes& shapes, const BatchNormGroups& groups,
                         const BatchNormStatistics& statistics, const T* src, const T* weight, const T* d_dst,
                         T* d_src, T* d_weight, T* d_bias);

/// With running statistics instead of the batch's.
template <typename T>
void batch_norm_evaluate(const OpShapes& shapes, const graph::BatchNorm& norm, const T* src, const T* weight,
                         const T* bias, const T* running_mean, const T* running_var, T* dst);

}  // namespace paceline::engine::reference

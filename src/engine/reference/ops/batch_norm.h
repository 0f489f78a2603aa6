#pragma once

/// Batch normalisation of the reference engine. Local, ghost and synchronised batch norm are one computation
/// over groups of samples.
///
/// Local batch norm has one group, ghost batch norm several. Synchronised batch norm has one group that spans
/// the batches of all workers; `reduce` adds their sums. All sums are in double.
///
/// Shapes   src, dst [N, C, H, W]; weight, bias [C]

#include <functional>
#include <span>
#include <vector>

#include "engine/reference/ops/op_shapes.h"

namespace paceline::engine::reference {

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

/// Evaluation: uses the running statistics.
template <typename T>
void batch_norm_evaluate(const OpShapes& shapes, const graph::BatchNorm& norm, const T* src, const T* weight,
                         const T* bias, const T* running_mean, const T* running_var, T* dst);

}  // namespace paceline::engine::reference

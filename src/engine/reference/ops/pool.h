#pragma once

/// Pooling of the reference engine: the maximum or the mean of each window, and the mean of each whole plane.
///
/// Backward functions add to d_src, since several ops may read one value.
///
/// Shapes   src [N, C, H, W], dst and winner [N, C, P, Q]; global pooling: dst [N, C]

#include "engine/reference/ops/op_shapes.h"

namespace paceline::engine::reference {

/// Padding counts as -infinity; NaN counts as the maximum. `winner` receives, for each window, the index in
/// its plane of the largest element (the first of equal ones, as in PyTorch).
template <typename T>
void max_pool_forward(const OpShapes& shapes, const graph::MaxPool& pool, const T* src, T* dst,
                      std::int32_t* winner);

/// d_src += d_dst at the winners.
template <typename T>
void max_pool_backward(const OpShapes& shapes, const std::int32_t* winner, const T* d_dst, T* d_src);

/// Padding counts as zeros, also in the divisor.
template <typename T>
void average_pool_forward(const OpShapes& shapes, const graph::AveragePool& pool, const T* src, T* dst);

/// d_src += d_dst, divided equally among the elements of each window.
template <typename T>
void average_pool_backward(const OpShapes& shapes, const graph::AveragePool& pool, const T* d_dst, T* d_src);

template <typename T>
void global_average_pool_forward(const OpShapes& shapes, const T* src, T* dst);

/// d_src += d_dst, divided equally among the elements of each plane.
template <typename T>
void global_average_pool_backward(const OpShapes& shapes, const T* d_dst, T* d_src);

}  // namespace paceline::engine::reference

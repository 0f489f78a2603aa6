#pragma once

/// Convolution (cross-correlation) of the reference engine by im2col: each sample's windows become the
/// columns of a matrix.
///
/// Shapes   src [N, C, H, W], weight [K, C, R, S], bias [K] or null, dst [N, K, P, Q]

#include "engine/reference/ops/op_shapes.h"

namespace paceline::engine::reference {

/// dst = weight * src + bias.
template <typename T>
void conv2d_forward(const OpShapes& shapes, const graph::Conv2d& conv, const T* src, const T* weight,
                    const T* bias, T* dst);

/// d_src += weight^T * d_dst.
template <typename T>
void conv2d_backward_data(const OpShapes& shapes, const graph::Conv2d& conv, const T* d_dst, const T* weight,
                          T* d_src);

/// d_weight = d_dst * src^T; d_bias = sum of d_dst, unless it is null.
template <typename T>
void conv2d_backward_weight(const OpShapes& shapes, const graph::Conv2d& conv, const T* src, const T* d_dst,
                            T* d_weight, T* d_bias);

}  // namespace paceline::engine::reference

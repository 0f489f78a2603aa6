#pragma once

/// Convolutions and dense layers of the reference engine.

#include <cstdint>

#include "engine/reference/ops.h"

namespace paceline::engine::reference {

// The two matrix operations on which the reference engine's convolutions and dense layers are built: plain
// loops over row-major arrays. matrix.cc has them, which is compiled for several instruction sets.

/// c += a * b.
///
/// Shapes   a [rows, inner], b [inner, columns], c [rows, columns]
template <typename T>
void add_product(std::int64_t rows, std::int64_t inner, std::int64_t columns, const T* a, const T* b, T* c);

/// dst [columns, rows] = src [rows, columns], transposed.
template <typename T>
void transpose(std::int64_t rows, std::int64_t columns, const T* src, T* dst);

// Dense layer of the reference engine.
//
// Shapes   src [N, E], weight [F, E], bias [F] or null, dst [N, F], where E = C * H * W

template <typename T>
void dense_forward(const OpShapes& shapes, const T* src, const T* weight, const T* bias, T* dst);

/// d_src += d_dst * weight.
template <typename T>
void dense_backward_data(const OpShapes& shapes, const T* d_dst, const T* weight, T* d_src);

/// d_weight = d_dst^T * src; d_bias = sum of d_dst, unless it is null.
template <typename T>
void dense_backward_weight(const OpShapes& shapes, const T* src, const T* d_dst, T* d_weight, T* d_bias);

// Convolution (cross-correlation) of the reference engine by im2col: each sample's windows become the
// columns of a matrix.
//
// Shapes   src [N, C, H, W], weight [K, C / groups, R, S], bias [K] or null, dst [N, K, P, Q]

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

#pragma once

/// Dense layer of the reference engine.
///
/// Shapes   src [N, E], weight [F, E], bias [F] or null, dst [N, F], where E = C * H * W

#include "engine/reference/ops/op_shapes.h"

namespace paceline::engine::reference {

template <typename T>
void dense_forward(const OpShapes& shapes, const T* src, const T* weight, const T* bias, T* dst);

/// d_src += d_dst * weight.
template <typename T>
void dense_backward_data(const OpShapes& shapes, const T* d_dst, const T* weight, T* d_src);

/// d_weight = d_dst^T * src; d_bias = sum of d_dst, unless it is null.
template <typename T>
void dense_backward_weight(const OpShapes& shapes, const T* src, const T* d_dst, T* d_weight, T* d_bias);

}  // namespace paceline::engine::reference

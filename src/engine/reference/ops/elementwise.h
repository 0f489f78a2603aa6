#pragma once

/// Elementwise ops of the reference engine: sum of two values, ReLU, GELU.
///
/// Backward functions add to d_src, since several ops may read one value.

#include "engine/reference/ops/op_shapes.h"

namespace paceline::engine::reference {

/// dst = left + right, for values of the same shape.
template <typename T>
void add_forward(const OpShapes& shapes, const T* left, const T* right, T* dst);

/// d_src += d_dst. Call it for each of the two inputs.
template <typename T>
void add_backward(const OpShapes& shapes, const T* d_dst, T* d_src);

/// max(x, 0); NaN stays NaN.
template <typename T>
void relu_forward(const OpShapes& shapes, const T* src, T* dst);

/// d_src += d_dst where dst is not <= 0. Reads dst and not src, so that a fast engine may compute in place.
template <typename T>
void relu_backward(const OpShapes& shapes, const T* dst, const T* d_dst, T* d_src);

/// x * Phi(x), exact (Hendrycks & Gimpel, 2016); Phi is the normal distribution function.
template <typename T>
void gelu_forward(const OpShapes& shapes, const T* src, T* dst);

template <typename T>
void gelu_backward(const OpShapes& shapes, const T* src, const T* d_dst, T* d_src);

}  // namespace paceline::engine::reference

#include "engine/reference/ops/elementwise.h"

#include <cmath>
#include <numbers>

namespace paceline::engine::reference {

template <typename T>
void add_forward(const OpShapes& shapes, const T* left, const T* right, T* dst) {
  for (std::int64_t i = 0; i < shapes.dst_elements(); ++i) dst[i] = left[i] + right[i];
}

template <typename T>
void add_backward(const OpShapes& shapes, const T* d_dst, T* d_src) {
  for (std::int64_t i = 0; i < shapes.dst_elements(); ++i) d_src[i] += d_dst[i];
}

template <typename T>
void relu_forward(const OpShapes& shapes, const T* src, T* dst) {
  // Written so that NaN is passed on: a broken loss must be visible.
  for (std::int64_t i = 0; i < shapes.dst_elements(); ++i) dst[i] = src[i] < 0 ? T{0} : src[i];
}

template <typename T>
void relu_backward(const OpShapes& shapes, const T* dst, const T* d_dst, T* d_src) {
  for (std::int64_t i = 0; i < shapes.dst_elements(); ++i)
    if (dst[i] > 0) d_src[i] += d_dst[i];
}

template <typename T>
void gelu_forward(const OpShapes& shapes, const T* src, T* dst) {
  const T root_half = static_cast<T>(std::numbers::sqrt2 / 2);
  for (std::int64_t i = 0; i < shapes.dst_elements(); ++i)
    dst[i] = src[i] * (T{1} + std::erf(src[i] * root_half)) / 2;
}

template <typename T>
void gelu_backward(const OpShapes& shapes, const T* src, const T* d_dst, T* d_src) {
  const T root_half = static_cast<T>(std::numbers::sqrt2 / 2);
  const T density = static_cast<T>(std::numbers::inv_sqrtpi / std::numbers::sqrt2);  // 1 / sqrt(2 pi)
  for (std::int64_t i = 0; i < shapes.dst_elements(); ++i) {
    const T x = src[i];
    const T phi = (T{1} + std::erf(x * root_half)) / 2;
    d_src[i] += d_dst[i] * (phi + x * density * std::exp(-x * x / 2));
  }
}

#define PACELINE_INSTANTIATE(T)                                         \
  template void add_forward(const OpShapes&, const T*, const T*, T*);   \
  template void add_backward(const OpShapes&, const T*, T*);            \
  template void relu_forward(const OpShapes&, const T*, T*);            \
  template void relu_backward(const OpShapes&, const T*, const T*, T*); \
  template void gelu_forward(const OpShapes&, const T*, T*);            \
  template void gelu_backward(const OpShapes&, const T*, const T*, T*);
PACELINE_INSTANTIATE(float)
PACELINE_INSTANTIATE(double)

#undef PACELINE_INSTANTIATE
}  // namespace paceline::engine::reference

#pragma once

/// x * Phi(x), exact (Hendrycks & Gimpel, 2016); Phi is the normal distribution function.

#include <cmath>
#include <numbers>

#include "engine/reference/ops/site.h"

namespace paceline::engine::reference {

template <typename T>
void gelu_forward(const Site& site, const T* src, T* dst) {
  const T root_half = static_cast<T>(std::numbers::sqrt2 / 2);
  for (std::int64_t i = 0; i < site.dst_elements(); ++i)
    dst[i] = src[i] * (T{1} + std::erf(src[i] * root_half)) / 2;
}

template <typename T>
void gelu_backward(const Site& site, const T* src, const T* d_dst, T* d_src) {
  const T root_half = static_cast<T>(std::numbers::sqrt2 / 2);
  const T density = static_cast<T>(std::numbers::inv_sqrtpi / std::numbers::sqrt2);  // 1 / sqrt(2 pi)
  for (std::int64_t i = 0; i < site.dst_elements(); ++i) {
    const T x = src[i];
    const T phi = (T{1} + std::erf(x * root_half)) / 2;
    d_src[i] += d_dst[i] * (phi + x * density * std::exp(-x * x / 2));
  }
}

}  // namespace paceline::engine::reference

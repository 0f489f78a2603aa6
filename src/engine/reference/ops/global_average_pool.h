#pragma once

/// Mean of each channel's whole plane. Shapes: src [N, C, H, W], dst [N, C].

#include "engine/reference/ops/site.h"

namespace paceline::engine::reference {

template <typename T>
void global_average_pool_forward(const Site& site, const T* src, T* dst) {
  const std::int64_t plane = std::int64_t{1} * site.src.height * site.src.width;
  for (std::int64_t c = 0; c < site.dst_elements(); ++c) {
    T sum = 0;
    for (std::int64_t i = c * plane; i < (c + 1) * plane; ++i) sum += src[i];
    dst[c] = sum / static_cast<T>(plane);
  }
}

template <typename T>
void global_average_pool_backward(const Site& site, const T* d_dst, T* d_src) {
  const std::int64_t plane = std::int64_t{1} * site.src.height * site.src.width;
  for (std::int64_t c = 0; c < site.dst_elements(); ++c)
    for (std::int64_t i = c * plane; i < (c + 1) * plane; ++i) d_src[i] += d_dst[c] / static_cast<T>(plane);
}

}  // namespace paceline::engine::reference

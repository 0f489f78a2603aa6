#pragma once

/// max(x, 0). Its backward pass looks at dst alone, so that src may be overwritten by a fast engine.

#include "engine/reference/ops/site.h"

namespace paceline::engine::reference {

template <typename T>
void relu_forward(const Site& site, const T* src, T* dst) {
  // Written so that NaN goes through: a broken loss must show.
  for (std::int64_t i = 0; i < site.dst_elements(); ++i) dst[i] = src[i] < 0 ? T{0} : src[i];
}

template <typename T>
void relu_backward(const Site& site, const T* dst, const T* d_dst, T* d_src) {
  for (std::int64_t i = 0; i < site.dst_elements(); ++i)
    if (dst[i] > 0) d_src[i] += d_dst[i];
}

}  // namespace paceline::engine::reference

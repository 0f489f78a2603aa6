#pragma once

/// Sum of two values of one shape.

#include "engine/reference/ops/site.h"

namespace paceline::engine::reference {

template <typename T>
void add_forward(const Site& site, const T* left, const T* right, T* dst) {
  for (std::int64_t i = 0; i < site.dst_elements(); ++i) dst[i] = left[i] + right[i];
}

/// To be called for each of the two inputs: d_src += d_dst.
template <typename T>
void add_backward(const Site& site, const T* d_dst, T* d_src) {
  for (std::int64_t i = 0; i < site.dst_elements(); ++i) d_src[i] += d_dst[i];
}

}  // namespace paceline::engine::reference

#pragma once

/// Mean of each window; padding counts as zeros, in the divisor too. Shapes: src [N, C, H, W], dst [N, C, P,
/// Q].

#include "engine/reference/ops/site.h"

namespace paceline::engine::reference {

template <typename T>
void average_pool_forward(const Site& site, const graph::AveragePool& pool, const T* src, T* dst);

/// d_src += d_dst spread over each window.
template <typename T>
void average_pool_backward(const Site& site, const graph::AveragePool& pool, const T* d_dst, T* d_src);

}  // namespace paceline::engine::reference

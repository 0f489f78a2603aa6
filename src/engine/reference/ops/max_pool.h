#pragma once

/// Largest value of each window; padding counts as -infinity. `winner` remembers which element of the plane
/// won (the first of equals, as in PyTorch); NaN wins over everything.
///
/// Shapes   src [N, C, H, W], dst and winner [N, C, P, Q]

#include "engine/reference/ops/site.h"

namespace paceline::engine::reference {

template <typename T>
void max_pool_forward(const Site& site, const graph::MaxPool& pool, const T* src, T* dst,
                      std::int32_t* winner);

/// d_src += d_dst at the winners.
template <typename T>
void max_pool_backward(const Site& site, const std::int32_t* winner, const T* d_dst, T* d_src);

}  // namespace paceline::engine::reference

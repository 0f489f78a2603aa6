#include "engine/reference/ops/average_pool.h"

#include <algorithm>

namespace paceline::engine::reference {
namespace {

/// Calls visit(output element, source element) for every element of every window that is not padding.
template <typename Visit>
void for_each_element(const Site& site, const graph::AveragePool& pool, Visit visit) {
  const int height = site.src.height, width = site.src.width;
  const std::int64_t planes = std::int64_t{1} * site.batch * site.src.channels;
  std::int64_t out = 0;
  for (std::int64_t plane = 0; plane < planes; ++plane)
    for (int p = 0; p < site.dst.height; ++p)
      for (int q = 0; q < site.dst.width; ++q, ++out) {
        const int top = p * pool.stride - pool.padding, left = q * pool.stride - pool.padding;
        for (int h = std::max(top, 0); h < std::min(top + pool.kernel, height); ++h)
          for (int w = std::max(left, 0); w < std::min(left + pool.kernel, width); ++w)
            visit(out, (plane * height + h) * width + w);
      }
}

}  // namespace

template <typename T>
void average_pool_forward(const Site& site, const graph::AveragePool& pool, const T* src, T* dst) {
  const T part = T{1} / static_cast<T>(pool.kernel * pool.kernel);
  std::fill_n(dst, site.dst_elements(), T{0});
  for_each_element(site, pool, [&](std::int64_t out, std::int64_t in) { dst[out] += src[in] * part; });
}

template <typename T>
void average_pool_backward(const Site& site, const graph::AveragePool& pool, const T* d_dst, T* d_src) {
  const T part = T{1} / static_cast<T>(pool.kernel * pool.kernel);
  for_each_element(site, pool, [&](std::int64_t out, std::int64_t in) { d_src[in] += d_dst[out] * part; });
}

#define PACELINE_INSTANTIATE(T)                                                             \
  template void average_pool_forward(const Site&, const graph::AveragePool&, const T*, T*); \
  template void average_pool_backward(const Site&, const graph::AveragePool&, const T*, T*);
PACELINE_INSTANTIATE(float)
PACELINE_INSTANTIATE(double)

}  // namespace paceline::engine::reference

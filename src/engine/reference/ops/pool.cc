#include "engine/reference/ops/pool.h"

#include <algorithm>
#include <cmath>

namespace paceline::engine::reference {
namespace {

/// Calls visit(output element, source element) for every element of every window that is not padding.
template <typename Visit>
void for_each_element(const OpShapes& shapes, const graph::AveragePool& pool, Visit visit) {
  const int height = shapes.src.height, width = shapes.src.width;
  const std::int64_t planes = std::int64_t{1} * shapes.batch * shapes.src.channels;
  std::int64_t out = 0;
  for (std::int64_t plane = 0; plane < planes; ++plane)
    for (int p = 0; p < shapes.dst.height; ++p)
      for (int q = 0; q < shapes.dst.width; ++q, ++out) {
        const int top = p * pool.stride - pool.padding, left = q * pool.stride - pool.padding;
        for (int h = std::max(top, 0); h < std::min(top + pool.kernel, height); ++h)
          for (int w = std::max(left, 0); w < std::min(left + pool.kernel, width); ++w)
            visit(out, (plane * height + h) * width + w);
      }
}

}  // namespace

template <typename T>
void max_pool_forward(const OpShapes& shapes, const graph::MaxPool& pool, const T* src, T* dst,
                      std::int32_t* winner) {
  const int height = shapes.src.height, width = shapes.src.width;
  const std::int64_t planes = std::int64_t{1} * shapes.batch * shapes.src.channels;
  for (std::int64_t plane = 0; plane < planes; ++plane, src += std::int64_t{1} * height * width) {
    for (int p = 0; p < shapes.dst.height; ++p) {
      const int top = p * pool.stride - pool.padding;
      for (int q = 0; q < shapes.dst.width; ++q, ++dst, ++winner) {
        const int left = q * pool.stride - pool.padding;
        std::int32_t best = -1;
        for (int h = std::max(top, 0); h < std::min(top + pool.kernel, height); ++h)
          for (int w = std::max(left, 0); w < std::min(left + pool.kernel, width); ++w) {
            const std::int32_t candidate = h * width + w;
            if (best < 0 || src[candidate] > src[best] || std::isnan(src[candidate])) best = candidate;
          }
        *dst = src[best];
        *winner = best;
      }
    }
  }
}

template <typename T>
void max_pool_backward(const OpShapes& shapes, const std::int32_t* winner, const T* d_dst, T* d_src) {
  const std::int64_t src_plane = std::int64_t{1} * shapes.src.height * shapes.src.width;
  const std::int64_t dst_plane = std::int64_t{1} * shapes.dst.height * shapes.dst.width;
  const std::int64_t planes = std::int64_t{1} * shapes.batch * shapes.src.channels;
  for (std::int64_t plane = 0; plane < planes; ++plane)
    for (std::int64_t i = plane * dst_plane; i < (plane + 1) * dst_plane; ++i)
      d_src[plane * src_plane + winner[i]] += d_dst[i];
}

template <typename T>
void average_pool_forward(const OpShapes& shapes, const graph::AveragePool& pool, const T* src, T* dst) {
  const T part = T{1} / static_cast<T>(pool.kernel * pool.kernel);
  std::fill_n(dst, shapes.dst_elements(), T{0});
  for_each_element(shapes, pool, [&](std::int64_t out, std::int64_t in) { dst[out] += src[in] * part; });
}

template <typename T>
void average_pool_backward(const OpShapes& shapes, const graph::AveragePool& pool, const T* d_dst, T* d_src) {
  const T part = T{1} / static_cast<T>(pool.kernel * pool.kernel);
  for_each_element(shapes, pool, [&](std::int64_t out, std::int64_t in) { d_src[in] += d_dst[out] * part; });
}

template <typename T>
void global_average_pool_forward(const OpShapes& shapes, const T* src, T* dst) {
  const std::int64_t plane = std::int64_t{1} * shapes.src.height * shapes.src.width;
  for (std::int64_t c = 0; c < shapes.dst_elements(); ++c) {
    T sum = 0;
    for (std::int64_t i = c * plane; i < (c + 1) * plane; ++i) sum += src[i];
    dst[c] = sum / static_cast<T>(plane);
  }
}

template <typename T>
void global_average_pool_backward(const OpShapes& shapes, const T* d_dst, T* d_src) {
  const std::int64_t plane = std::int64_t{1} * shapes.src.height * shapes.src.width;
  for (std::int64_t c = 0; c < shapes.dst_elements(); ++c)
    for (std::int64_t i = c * plane; i < (c + 1) * plane; ++i) d_src[i] += d_dst[c] / static_cast<T>(plane);
}

#define PACELINE_INSTANTIATE(T)                                                                        \
  template void max_pool_forward(const OpShapes&, const graph::MaxPool&, const T*, T*, std::int32_t*); \
  template void max_pool_backward(const OpShapes&, const std::int32_t*, const T*, T*);                 \
  template void average_pool_forward(const OpShapes&, const graph::AveragePool&, const T*, T*);        \
  template void average_pool_backward(const OpShapes&, const graph::AveragePool&, const T*, T*);       \
  template void global_average_pool_forward(const OpShapes&, const T*, T*);                            \
  template void global_average_pool_backward(const OpShapes&, const T*, T*);
PACELINE_INSTANTIATE(float)
PACELINE_INSTANTIATE(double)

#undef PACELINE_INSTANTIATE
}  // namespace paceline::engine::reference

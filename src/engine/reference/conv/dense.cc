#include "engine/reference/conv/dense.h"

#include <algorithm>
#include <vector>

#include "engine/reference/conv/matrix.h"

namespace paceline::engine::reference {

template <typename T>
void dense_forward(const OpShapes& shapes, const T* src, const T* weight, const T* bias, T* dst) {
  const std::int64_t features = shapes.dst.channels, elements = shapes.src.elements();
  std::vector<T> transposed(static_cast<std::size_t>(features * elements));
  transpose<T>(features, elements, weight, transposed.data());
  for (int n = 0; n < shapes.batch; ++n)
    for (std::int64_t f = 0; f < features; ++f) dst[n * features + f] = bias != nullptr ? bias[f] : T{0};
  add_product<T>(shapes.batch, elements, features, src, transposed.data(), dst);
}

template <typename T>
void dense_backward_data(const OpShapes& shapes, const T* d_dst, const T* weight, T* d_src) {
  add_product<T>(shapes.batch, shapes.dst.channels, shapes.src.elements(), d_dst, weight, d_src);
}

template <typename T>
void dense_backward_weight(const OpShapes& shapes, const T* src, const T* d_dst, T* d_weight, T* d_bias) {
  const std::int64_t features = shapes.dst.channels, elements = shapes.src.elements();
  std::vector<T> transposed(static_cast<std::size_t>(features * shapes.batch));
  transpose<T>(shapes.batch, features, d_dst, transposed.data());
  std::fill_n(d_weight, features * elements, T{0});
  add_product<T>(features, shapes.batch, elements, transposed.data(), src, d_weight);
  if (d_bias == nullptr) return;
  std::fill_n(d_bias, features, T{0});
  for (int n = 0; n < shapes.batch; ++n)
    for (std::int64_t f = 0; f < features; ++f) d_bias[f] += d_dst[n * features + f];
}

#define PACELINE_INSTANTIATE(T)                                                   \
  template void dense_forward(const OpShapes&, const T*, const T*, const T*, T*); \
  template void dense_backward_data(const OpShapes&, const T*, const T*, T*);     \
  template void dense_backward_weight(const OpShapes&, const T*, const T*, T*, T*);
PACELINE_INSTANTIATE(float)
PACELINE_INSTANTIATE(double)

#undef PACELINE_INSTANTIATE
}  // namespace paceline::engine::reference

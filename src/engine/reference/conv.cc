#include "engine/reference/conv.h"

#include <algorithm>
#include <vector>

namespace paceline::engine::reference {
namespace {

/// The unfolded matrix of one sample is [C*R*S, P*Q]: row (c, r, s) holds, for each output pixel, the source
/// element under tap (r, s) of channel c, or zero where that lies in the padding.
struct Unfolding {
  std::int64_t rows, columns;  // C*R*S, P*Q
  Unfolding(const OpShapes& shapes, const graph::Conv2d& conv)
      : rows(std::int64_t{1} * shapes.src.channels * conv.kernel.product()),
        columns(std::int64_t{1} * shapes.dst.height * shapes.dst.width) {}
};

/// Calls visit(unfolded element, source element) for every pair that is not padding.
template <typename Visit>
void for_each_tap(const OpShapes& shapes, const graph::Conv2d& conv, Visit visit) {
  const int height = shapes.src.height, width = shapes.src.width;
  std::int64_t row = 0;
  for (int c = 0; c < shapes.src.channels; ++c)
    for (int r = 0; r < conv.kernel.height; ++r)
      for (int s = 0; s < conv.kernel.width; ++s, ++row)
        for (int p = 0; p < shapes.dst.height; ++p) {
          const int h = p * conv.stride.height + r * conv.dilation.height - conv.padding.height;
          if (h < 0 || h >= height) continue;
          const std::int64_t unfolded = (row * shapes.dst.height + p) * shapes.dst.width;
          const std::int64_t source = (std::int64_t{c} * height + h) * width;
          for (int q = 0; q < shapes.dst.width; ++q) {
            const int w = q * conv.stride.width + s * conv.dilation.width - conv.padding.width;
            if (w >= 0 && w < width) visit(unfolded + q, source + w);
          }
        }
}

}  // namespace

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

namespace {

/// One group of a convolution in its arrays: output channels, rows of the unfolded matrix, and where they
/// begin.
struct Group {
  std::int64_t channels, rows;
  std::int64_t weight, unfolded, dst;  // first elements
  Group(const graph::Conv2d& conv, const Unfolding& matrix, int number)
      : channels(conv.channels / conv.groups),
        rows(matrix.rows / conv.groups),
        weight(number * channels * rows),
        unfolded(number * rows * matrix.columns),
        dst(number * channels * matrix.columns) {}
};

}  // namespace

template <typename T>
void conv2d_forward(const OpShapes& shapes, const graph::Conv2d& conv, const T* src, const T* weight,
                    const T* bias, T* dst) {
  const Unfolding matrix(shapes, conv);
  std::vector<T> unfolded(
      static_cast<std::size_t>(matrix.rows * matrix.columns));  // padding stays zero throughout
  for (int n = 0; n < shapes.batch; ++n) {
    const T* image = src + n * shapes.src.elements();
    T* out = dst + n * shapes.dst.elements();
    for_each_tap(shapes, conv, [&](std::int64_t to, std::int64_t from) { unfolded[to] = image[from]; });
    for (int k = 0; k < conv.channels; ++k)
      std::fill_n(out + k * matrix.columns, matrix.columns, bias != nullptr ? bias[k] : T{0});
    for (int g = 0; g < conv.groups; ++g) {
      const Group group(conv, matrix, g);
      add_product<T>(group.channels, group.rows, matrix.columns, weight + group.weight,
                     unfolded.data() + group.unfolded, out + group.dst);
    }
  }
}

template <typename T>
void conv2d_backward_data(const OpShapes& shapes, const graph::Conv2d& conv, const T* d_dst, const T* weight,
                          T* d_src) {
  const Unfolding matrix(shapes, conv);
  std::vector<T> transposed(static_cast<std::size_t>(matrix.rows / conv.groups * conv.channels));
  for (int g = 0; g < conv.groups; ++g) {
    const Group group(conv, matrix, g);
    transpose<T>(group.channels, group.rows, weight + group.weight, transposed.data() + group.weight);
  }
  std::vector<T> d_unfolded(static_cast<std::size_t>(matrix.rows * matrix.columns));
  for (int n = 0; n < shapes.batch; ++n) {
    std::fill(d_unfolded.begin(), d_unfolded.end(), T{0});
    for (int g = 0; g < conv.groups; ++g) {
      const Group group(conv, matrix, g);
      add_product<T>(group.rows, group.channels, matrix.columns, transposed.data() + group.weight,
                     d_dst + n * shapes.dst.elements() + group.dst, d_unfolded.data() + group.unfolded);
    }
    T* d_image = d_src + n * shapes.src.elements();
    for_each_tap(shapes, conv, [&](std::int64_t from, std::int64_t to) { d_image[to] += d_unfolded[from]; });
  }
}

template <typename T>
void conv2d_backward_weight(const OpShapes& shapes, const graph::Conv2d& conv, const T* src, const T* d_dst,
                            T* d_weight, T* d_bias) {
  const Unfolding matrix(shapes, conv);
  std::fill_n(d_weight, conv.channels * matrix.rows / conv.groups, T{0});
  if (d_bias != nullptr) std::fill_n(d_bias, conv.channels, T{0});
  std::vector<T> unfolded(static_cast<std::size_t>(matrix.rows * matrix.columns));
  std::vector<T> transposed(unfolded.size());
  for (int n = 0; n < shapes.batch; ++n) {
    const T* image = src + n * shapes.src.elements();
    const T* d_out = d_dst + n * shapes.dst.elements();
    for_each_tap(shapes, conv, [&](std::int64_t to, std::int64_t from) { unfolded[to] = image[from]; });
    for (int g = 0; g < conv.groups; ++g) {
      const Group group(conv, matrix, g);
      T* const columns = transposed.data() + group.unfolded;
      transpose<T>(group.rows, matrix.columns, unfolded.data() + group.unfolded, columns);
      add_product<T>(group.channels, matrix.columns, group.rows, d_out + group.dst, columns,
                     d_weight + group.weight);
    }
    if (d_bias == nullptr) continue;
    for (int k = 0; k < conv.channels; ++k)
      for (std::int64_t i = 0; i < matrix.columns; ++i) d_bias[k] += d_out[k * matrix.columns + i];
  }
}

#define PACELINE_INSTANTIATE(T)                                                                          \
  template void dense_forward(const OpShapes&, const T*, const T*, const T*, T*);                        \
  template void dense_backward_data(const OpShapes&, const T*, const T*, T*);                            \
  template void dense_backward_weight(const OpShapes&, const T*, const T*, T*, T*);                      \
  template void conv2d_forward(const OpShapes&, const graph::Conv2d&, const T*, const T*, const T*, T*); \
  template void conv2d_backward_data(const OpShapes&, const graph::Conv2d&, const T*, const T*, T*);     \
  template void conv2d_backward_weight(const OpShapes&, const graph::Conv2d&, const T*, const T*, T*, T*);
PACELINE_INSTANTIATE(float)
PACELINE_INSTANTIATE(double)
#undef PACELINE_INSTANTIATE

}  // namespace paceline::engine::reference

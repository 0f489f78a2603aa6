// Ops of single elements and of whole channels: activations, sums, products, copies of channels.

#include <algorithm>
#include <cmath>
#include <numbers>

#include "engine/reference/ops.h"

namespace paceline::engine::reference {

template <typename T>
void add_forward(const OpShapes& shapes, const T* left, const T* right, T* dst) {
  for (std::int64_t i = 0; i < shapes.dst_elements(); ++i) dst[i] = left[i] + right[i];
}

template <typename T>
void add_backward(const OpShapes& shapes, const T* d_dst, T* d_src) {
  for (std::int64_t i = 0; i < shapes.dst_elements(); ++i) d_src[i] += d_dst[i];
}

namespace {

// Each elementwise op as value(src) and gradient(kept, d_dst). The sides of a kink are PyTorch's.

template <typename Op>
struct Elementwise;

template <>
struct Elementwise<graph::Relu> {  // gradient of dst
  // Written so that NaN is passed on: a broken loss must be visible.
  static auto value(auto x) { return x < 0 ? decltype(x){0} : x; }
  static auto gradient(auto y, auto d) { return y > 0 ? d : decltype(d){0}; }
};
template <>
struct Elementwise<graph::Relu6> {  // gradient of dst
  static auto value(auto x) { return x < 0 ? decltype(x){0} : x > 6 ? decltype(x){6} : x; }
  static auto gradient(auto y, auto d) { return y > 0 && y < 6 ? d : decltype(d){0}; }
};
/// x * Phi(x), exact (Hendrycks & Gimpel, 2016); Phi is the normal distribution function.
template <>
struct Elementwise<graph::Gelu> {
  static auto value(auto x) {
    using T = decltype(x);
    const T root_half = static_cast<T>(std::numbers::sqrt2 / 2);
    return x * (T{1} + std::erf(x * root_half)) / 2;
  }
  static auto gradient(auto x, auto d) {
    using T = decltype(x);
    const T root_half = static_cast<T>(std::numbers::sqrt2 / 2);
    const T density = static_cast<T>(std::numbers::inv_sqrtpi / std::numbers::sqrt2);  // 1 / sqrt(2 pi)
    const T phi = (T{1} + std::erf(x * root_half)) / 2;
    return d * (phi + x * density * std::exp(-x * x / 2));
  }
};
template <>
struct Elementwise<graph::Sigmoid> {  // gradient of dst
  static auto value(auto x) { return decltype(x){1} / (decltype(x){1} + std::exp(-x)); }
  static auto gradient(auto y, auto d) { return d * y * (1 - y); }
};
template <>
struct Elementwise<graph::Silu> {
  static auto value(auto x) { return x * Elementwise<graph::Sigmoid>::value(x); }
  static auto gradient(auto x, auto d) {
    const auto below = Elementwise<graph::Sigmoid>::value(x);
    return d * below * (1 + x * (1 - below));
  }
};
template <>
struct Elementwise<graph::Tanh> {  // gradient of dst
  static auto value(auto x) { return std::tanh(x); }
  static auto gradient(auto y, auto d) { return d * (1 - y * y); }
};
template <>
struct Elementwise<graph::HardSigmoid> {
  static auto value(auto x) { return Elementwise<graph::Relu6>::value(x + 3) / 6; }
  static auto gradient(auto x, auto d) { return x > -3 && x < 3 ? d / 6 : decltype(d){0}; }
};
template <>
struct Elementwise<graph::HardSwish> {
  static auto value(auto x) { return x * Elementwise<graph::HardSigmoid>::value(x); }
  static auto gradient(auto x, auto d) {
    return x < -3 ? decltype(d){0} : x <= 3 ? d * (x / 3 + decltype(d){0.5}) : d;
  }
};

}  // namespace

template <typename Op, typename T>
void elementwise_forward(const OpShapes& shapes, const T* src, T* dst) {
  for (std::int64_t i = 0; i < shapes.dst_elements(); ++i) dst[i] = Elementwise<Op>::value(src[i]);
}

template <typename Op, typename T>
void elementwise_backward(const OpShapes& shapes, const T* kept, const T* d_dst, T* d_src) {
  for (std::int64_t i = 0; i < shapes.dst_elements(); ++i)
    d_src[i] += Elementwise<Op>::gradient(kept[i], d_dst[i]);
}

template <typename T>
void mul_forward(const OpShapes& shapes, std::int64_t pixels, const T* left, const T* right, T* dst) {
  for (std::int64_t i = 0; i < shapes.dst_elements(); ++i) dst[i] = left[i] * right[i / pixels];
}

template <typename T>
void mul_backward(const OpShapes& shapes, std::int64_t pixels, const T* left, const T* right, const T* d_dst,
                  T* d_left, T* d_right) {
  for (std::int64_t i = 0; i < shapes.dst_elements(); ++i) {
    if (d_left != nullptr) d_left[i] += d_dst[i] * right[i / pixels];
    if (d_right != nullptr) d_right[i / pixels] += d_dst[i] * left[i];
  }
}

namespace {

/// Calls visit(first element of a plane of src, and of dst) for each plane of a copy.
template <typename Visit>
void for_each_copied_plane(const OpShapes& shapes, const ChannelCopy& copy, Visit visit) {
  const std::int64_t plane = std::int64_t{1} * shapes.dst.height * shapes.dst.width;
  for (int n = 0; n < shapes.batch; ++n)
    for (int i = 0; i < copy.channels; ++i)
      visit(plane, (std::int64_t{1} * n * shapes.src.channels + copy.from + i) * plane,
            (std::int64_t{1} * n * shapes.dst.channels + copy.to + i * copy.step) * plane);
}

}  // namespace

template <typename T>
void copy_channels(const OpShapes& shapes, const ChannelCopy& copy, const T* src, T* dst) {
  for_each_copied_plane(shapes, copy, [&](std::int64_t plane, std::int64_t from, std::int64_t to) {
    std::copy_n(src + from, plane, dst + to);
  });
}

template <typename T>
void copy_channels_backward(const OpShapes& shapes, const ChannelCopy& copy, const T* d_dst, T* d_src) {
  for_each_copied_plane(shapes, copy, [&](std::int64_t plane, std::int64_t from, std::int64_t to) {
    for (std::int64_t i = 0; i < plane; ++i) d_src[from + i] += d_dst[to + i];
  });
}

namespace {

/// Calls visit(element of src, of dst) for each element that a pad keeps.
template <typename Visit>
void for_each_kept(const OpShapes& shapes, const graph::Pad& pad, Visit visit) {
  const graph::Shape &src = shapes.src, &dst = shapes.dst;
  std::int64_t to = 0;
  for (int n = 0; n < shapes.batch; ++n)
    for (int k = 0; k < dst.channels; ++k)
      for (int p = 0; p < dst.height; ++p)
        for (int q = 0; q < dst.width; ++q, ++to) {
          const int c = k - pad.front, h = p - pad.top, w = q - pad.left;
          if (c >= 0 && c < src.channels && h >= 0 && h < src.height && w >= 0 && w < src.width)
            visit(((std::int64_t{1} * n * src.channels + c) * src.height + h) * src.width + w, to);
        }
}

}  // namespace

template <typename T>
void pad_forward(const OpShapes& shapes, const graph::Pad& pad, const T* src, T* dst) {
  std::fill_n(dst, shapes.dst_elements(), T{0});
  for_each_kept(shapes, pad, [&](std::int64_t from, std::int64_t to) { dst[to] = src[from]; });
}

template <typename T>
void pad_backward(const OpShapes& shapes, const graph::Pad& pad, const T* d_dst, T* d_src) {
  for_each_kept(shapes, pad, [&](std::int64_t to, std::int64_t from) { d_src[to] += d_dst[from]; });
}

#define PACELINE_INSTANTIATE(T)                                                                    \
  template void add_forward(const OpShapes&, const T*, const T*, T*);                              \
  template void add_backward(const OpShapes&, const T*, T*);                                       \
  template void mul_forward(const OpShapes&, std::int64_t, const T*, const T*, T*);                \
  template void mul_backward(const OpShapes&, std::int64_t, const T*, const T*, const T*, T*, T*); \
  template void pad_forward(const OpShapes&, const graph::Pad&, const T*, T*);                     \
  template void pad_backward(const OpShapes&, const graph::Pad&, const T*, T*);                    \
  template void copy_channels(const OpShapes&, const ChannelCopy&, const T*, T*);                  \
  template void copy_channels_backward(const OpShapes&, const ChannelCopy&, const T*, T*);
PACELINE_INSTANTIATE(float)
PACELINE_INSTANTIATE(double)
#undef PACELINE_INSTANTIATE

#define PACELINE_INSTANTIATE(Op, name)                                                                \
  template void elementwise_forward<graph::Op>(const OpShapes&, const float*, float*);                \
  template void elementwise_forward<graph::Op>(const OpShapes&, const double*, double*);              \
  template void elementwise_backward<graph::Op>(const OpShapes&, const float*, const float*, float*); \
  template void elementwise_backward<graph::Op>(const OpShapes&, const double*, const double*, double*);
PACELINE_ELEMENTWISE_OPS(PACELINE_INSTANTIATE)
#undef PACELINE_INSTANTIATE

}  // namespace paceline::engine::reference

// AVX-512 only.

#include "engine/cpu/kernels/winograd.h"

#if defined(__x86_64__)
#include "engine/cpu/kernels/avx512_begin.inc"

namespace paceline::engine::cpu::winograd {
namespace {

#define PACELINE_INLINE inline __attribute__((always_inline))
using V = __m512;
constexpr int kLanes = 16;

#include "engine/cpu/kernels/transpose.inc"

PACELINE_INLINE int smaller(int a, int b) { return a < b ? a : b; }
PACELINE_INLINE V load(const float* p) { return _mm512_loadu_ps(p); }
PACELINE_INLINE void store(float* p, V v) { _mm512_storeu_ps(p, v); }
/// Past the caches, to whole lines: what is written is not read soon, and the lines need not be fetched
/// first.
PACELINE_INLINE void stream(float* p, V v) { _mm512_stream_ps(p, v); }
PACELINE_INLINE V splat(float x) { return _mm512_set1_ps(x); }
PACELINE_INLINE V add(V a, V b) { return _mm512_add_ps(a, b); }
PACELINE_INLINE V sub(V a, V b) { return _mm512_sub_ps(a, b); }
PACELINE_INLINE V mul(float a, V b) { return _mm512_mul_ps(splat(a), b); }
/// a * b + c
PACELINE_INLINE V mad(float a, V b, V c) { return _mm512_fmadd_ps(splat(a), b, c); }

// The points: 0, a, -a, b, -b, infinity.
constexpr float a1 = 0.625f, a2 = a1 * a1, a3 = a2 * a1;
constexpr float b1 = 1.5f, b2 = b1 * b1, b3 = b2 * b1;
// What a filter's value at each point is divided by: the product of the differences to the other points.
constexpr float n0 = a2 * b2, na = 2 * a2 * (a2 - b2), nb = 2 * b2 * (b2 - a2);

/// 6 inputs -> 6 positions, in place.
PACELINE_INLINE void input_row(V d[kTile]) {
  const V even_a = mad(-b2, d[2], d[4]), odd_a = mul(a1, mad(-b2, d[1], d[3]));
  const V even_b = mad(-a2, d[2], d[4]), odd_b = mul(b1, mad(-a2, d[1], d[3]));
  d[0] = mad(a2 * b2, d[0], mad(-(a2 + b2), d[2], d[4]));
  d[5] = mad(a2 * b2, d[1], mad(-(a2 + b2), d[3], d[5]));
  d[1] = add(even_a, odd_a);
  d[2] = sub(even_a, odd_a);
  d[3] = add(even_b, odd_b);
  d[4] = sub(even_b, odd_b);
}

/// 6 positions -> 4 outputs.
PACELINE_INLINE void output_row(const V m[kTile], V y[kOut]) {
  const V even_a = add(m[1], m[2]), odd_a = sub(m[1], m[2]);
  const V even_b = add(m[3], m[4]), odd_b = sub(m[3], m[4]);
  y[0] = add(m[0], add(even_a, even_b));
  y[1] = mad(a1, odd_a, mul(b1, odd_b));
  y[2] = mad(a2, even_a, mul(b2, even_b));
  y[3] = add(m[5], mad(a3, odd_a, mul(b3, odd_b)));
}

/// 4 gradients of outputs -> 6 positions.
PACELINE_INLINE void gradient_row(const V y[kOut], V z[kTile]) {
  const V even_a = mad(a2, y[2], y[0]), odd_a = mad(a3, y[3], mul(a1, y[1]));
  const V even_b = mad(b2, y[2], y[0]), odd_b = mad(b3, y[3], mul(b1, y[1]));
  z[0] = y[0];
  z[1] = add(even_a, odd_a);
  z[2] = sub(even_a, odd_a);
  z[3] = add(even_b, odd_b);
  z[4] = sub(even_b, odd_b);
  z[5] = y[3];
}

/// 3 taps -> 6 positions.
PACELINE_INLINE void filter_row(const V g[3], V u[kTile]) {
  const V even_a = mul(1 / na, mad(a2, g[2], g[0])), even_b = mul(1 / nb, mad(b2, g[2], g[0]));
  u[0] = mul(1 / n0, g[0]);
  u[1] = mad(a1 / na, g[1], even_a);
  u[2] = mad(-a1 / na, g[1], even_a);
  u[3] = mad(b1 / nb, g[1], even_b);
  u[4] = mad(-b1 / nb, g[1], even_b);
  u[5] = g[2];
}

/// 6 positions -> gradients of 3 taps.
PACELINE_INLINE void filter_gradient_row(const V m[kTile], V g[3]) {
  const V even_a = add(m[1], m[2]), even_b = add(m[3], m[4]);
  g[0] = mad(1 / n0, m[0], mad(1 / na, even_a, mul(1 / nb, even_b)));
  g[1] = mad(a1 / na, sub(m[1], m[2]), mul(b1 / nb, sub(m[3], m[4])));
  g[2] = add(m[5], mad(a2 / na, even_a, mul(b2 / nb, even_b)));
}

}  // namespace

void transform_input(const float* src, const Image& image, int y, int x, float* v, std::int64_t stride) {
  const std::int64_t row = std::int64_t{1} * image.width * image.channels;
  const bool inside = y >= 0 && x >= 0 && y + kTile <= image.height && x + kTile <= image.width;
  for (int c = 0; c < image.channels; c += kLanes) {
    const float* first = src + y * row + std::int64_t{1} * x * image.channels + c;
    V t[kTile][kTile];
    for (int i = 0; i < kTile; ++i) {
      V d[kTile];
      const float* p = first + i * row;
      if (inside) {
#pragma GCC unroll 6
        for (int j = 0; j < kTile; ++j) d[j] = load(p + j * image.channels);
      } else {
        const bool row_inside = y + i >= 0 && y + i < image.height;
#pragma GCC unroll 6
        for (int j = 0; j < kTile; ++j)
          d[j] = row_inside && x + j >= 0 && x + j < image.width ? load(p + j * image.channels) : V{};
      }
      input_row(d);
#pragma GCC unroll 6
      for (int j = 0; j < kTile; ++j) t[i][j] = d[j];
    }
    for (int j = 0; j < kTile; ++j) {
      V d[kTile];
#pragma GCC unroll 6
      for (int i = 0; i < kTile; ++i) d[i] = t[i][j];
      input_row(d);
#pragma GCC unroll 6
      for (int i = 0; i < kTile; ++i) store(v + (i * kTile + j) * stride + c, d[i]);
    }
  }
}

namespace {

// What becomes of an output: begin(c) before the pixels of 16 channels from c on, put() for each, end(c).
// `at` is the pixel's place in the images.

struct Store {
  float* dst;
  PACELINE_INLINE void begin(int) {}
  PACELINE_INLINE void put(V x, std::int64_t at) const { store(dst + at, x); }
  PACELINE_INLINE void end(int) {}
};

/// Adds 16 floats to doubles. (The intrinsics for halves make gcc 12 warn of its own header.)
PACELINE_INLINE void flush(V sum, double* into) {
  typedef double Doubles __attribute__((vector_size(64), aligned(8), may_alias));
  const auto low = __builtin_shufflevector(sum, sum, 0, 1, 2, 3, 4, 5, 6, 7);
  const auto high = __builtin_shufflevector(sum, sum, 8, 9, 10, 11, 12, 13, 14, 15);
  auto* to = reinterpret_cast<Doubles*>(into);
  to[0] += __builtin_convertvector(low, Doubles);
  to[1] += __builtin_convertvector(high, Doubles);
}

struct StoreAndSum {
  float* dst;
  const float* shift;
  double *sums, *squares;
  V around, sum, square;
  PACELINE_INLINE void begin(int c) {
    around = load(shift + c);
    sum = square = V{};
  }
  PACELINE_INLINE void put(V x, std::int64_t at) {
    store(dst + at, x);
    const V d = sub(x, around);
    sum = add(sum, d);
    square = _mm512_fmadd_ps(d, d, square);
  }
  PACELINE_INLINE void end(int c) const {
    flush(sum, sums + c);
    flush(square, squares + c);
  }
};

template <Mask mask, bool second>
struct MaskAndSum {
  const float *src, *dst, *first;
  float* d_masked;
  NormParams params;
  double *sums, *products;
  V mean, scale, bias, sum, product;
  PACELINE_INLINE void begin(int c) {
    mean = load(params.mean + c);
    scale = load(params.scale + c);
    bias = load(params.bias + c);
    sum = product = V{};
  }
  PACELINE_INLINE void put(V d, std::int64_t at) {
    const V centred = sub(load(src + at), mean);
    if constexpr (second) d = add(d, load(first + at));
    if constexpr (mask == Mask::from_src) {
      // As the forward pass rounded it: an explicit rounding is what the compiler does not fuse.
      constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
      d = passed(add(_mm512_maskz_mul_round_ps(0xffff, centred, scale, kNearest), bias), d);
    } else if constexpr (mask == Mask::from_dst) {
      d = passed(load(dst + at), d);
    }
    store(d_masked + at, d);
    sum = add(sum, d);
    product = _mm512_fmadd_ps(d, centred, product);
  }
  PACELINE_INLINE void end(int c) const {
    flush(sum, sums + c);
    flush(product, products + c);
  }
  /// y <= 0 ? 0 : d
  static PACELINE_INLINE V passed(V y, V d) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(y, V{}, _CMP_NLE_UQ), d);
  }
};

template <typename Put>
PACELINE_INLINE void transform_output_to(Put out_to, const float* m, std::int64_t stride, const Image& image,
                                         int sample, int y, int x) {
  const int rows = smaller(kOut, image.height - y), columns = smaller(kOut, image.width - x);
  for (int c = 0; c < image.channels; c += kLanes) {
    V t[kOut][kTile];
    for (int j = 0; j < kTile; ++j) {
      V column[kTile], out[kOut];
#pragma GCC unroll 6
      for (int i = 0; i < kTile; ++i) column[i] = load(m + (i * kTile + j) * stride + c);
      output_row(column, out);
#pragma GCC unroll 4
      for (int i = 0; i < kOut; ++i) t[i][j] = out[i];
    }
    out_to.begin(c);
    for (int i = 0; i < rows; ++i) {
      V out[kOut];
      output_row(t[i], out);
      const std::int64_t row = std::int64_t{1} * sample * image.height + y + i;
      const std::int64_t at = (row * image.width + x) * image.channels + c;
      if (columns == kOut) {
#pragma GCC unroll 4
        for (int j = 0; j < kOut; ++j) out_to.put(out[j], at + j * image.channels);
      } else {
        for (int j = 0; j < columns; ++j) out_to.put(out[j], at + j * image.channels);
      }
    }
    out_to.end(c);
  }
}

template <Mask mask>
void transform_output_masked(const Epilogue& e, const float* m, std::int64_t stride, const Image& image,
                             int sample, int y, int x) {
  const NormBackward& g = e.gradient;
  const auto floats = [](const void* p) { return static_cast<const float*>(p); };
  const auto with = [&](auto put) {
    put.src = floats(g.src);
    put.dst = floats(g.dst);
    put.first = floats(g.d_dst);
    put.d_masked = static_cast<float*>(g.d_masked);
    put.params = g.params;
    put.sums = e.sums;
    put.products = e.sums + image.channels;
    transform_output_to(put, m, stride, image, sample, y, x);
  };
  g.d_dst2 != nullptr ? with(MaskAndSum<mask, true>{}) : with(MaskAndSum<mask, false>{});
}

}  // namespace

void transform_output(const float* m, std::int64_t stride, float* dst, const Image& image, int sample, int y,
                      int x, const Epilogue* epilogue) {
  if (epilogue == nullptr) return transform_output_to(Store{dst}, m, stride, image, sample, y, x);
  const Epilogue& e = *epilogue;
  if (e.what == Epilogue::Sums::moments)
    return transform_output_to(StoreAndSum{.dst = dst,
                                           .shift = e.shift,
                                           .sums = e.sums,
                                           .squares = e.sums + image.channels,
                                           .around = V{},
                                           .sum = V{},
                                           .square = V{}},
                               m, stride, image, sample, y, x);
  switch (e.gradient.mask) {
    case Mask::none:
      return transform_output_masked<Mask::none>(e, m, stride, image, sample, y, x);
    case Mask::from_src:
      return transform_output_masked<Mask::from_src>(e, m, stride, image, sample, y, x);
    case Mask::from_dst:
      return transform_output_masked<Mask::from_dst>(e, m, stride, image, sample, y, x);
  }
}

void transform_gradient(const float* d_dst, const Image& image, int first, int count, int y, int x, float* z,
                        std::int64_t stride) {
  const int rows = smaller(kOut, image.height - y), columns = smaller(kOut, image.width - x);
  for (int c = 0; c < count; c += kLanes) {
    V t[kOut][kTile];
    for (int i = 0; i < kOut; ++i) {
      V d[kOut];
      const float* p = d_dst + ((y + i) * std::int64_t{1} * image.width + x) * image.channels + first + c;
#pragma GCC unroll 4
      for (int j = 0; j < kOut; ++j) d[j] = i < rows && j < columns ? load(p + j * image.channels) : V{};
      gradient_row(d, t[i]);
    }
    for (int j = 0; j < kTile; ++j) {
      V column[kOut], out[kTile];
#pragma GCC unroll 4
      for (int i = 0; i < kOut; ++i) column[i] = t[i][j];
      gradient_row(column, out);
#pragma GCC unroll 6
      for (int i = 0; i < kTile; ++i) store(z + (i * kTile + j) * stride + c, out[i]);
    }
  }
}

namespace {

template <bool rotated>
PACELINE_INLINE void transform_filters_to(const float* taps, std::int64_t lane_stride, float* u,
                                          std::int64_t stride) {
  constexpr __mmask16 kTaps = 0x1ff;  // of the 16 floats from a filter's first on
  V g[kLanes];
#pragma GCC unroll 16
  for (int lane = 0; lane < kLanes; ++lane) g[lane] = _mm512_maskz_loadu_ps(kTaps, taps + lane * lane_stride);
  transpose(g);
  const auto tap = [&](int t) __attribute__((always_inline)) { return g[rotated ? 8 - t : t]; };
  V t[3][kTile];
#pragma GCC unroll 3
  for (int i = 0; i < 3; ++i) {
    const V row[3] = {tap(3 * i), tap(3 * i + 1), tap(3 * i + 2)};
    filter_row(row, t[i]);
  }
  for (int j = 0; j < kTile; ++j) {
    const V column[3] = {t[0][j], t[1][j], t[2][j]};
    V out[kTile];
    filter_row(column, out);
    for (int i = 0; i < kTile; ++i) stream(u + (i * kTile + j) * stride, out[i]);
  }
}

}  // namespace

void transform_filters(const float* taps, std::int64_t lane_stride, bool rotated, float* u,
                       std::int64_t stride) {
  rotated ? transform_filters_to<true>(taps, lane_stride, u, stride)
          : transform_filters_to<false>(taps, lane_stride, u, stride);
}

void transform_filter_gradients(const float* m, std::int64_t stride, float* taps, std::int64_t tap_stride) {
  V t[3][kTile];
  for (int j = 0; j < kTile; ++j) {
    V column[kTile], g[3];
    for (int i = 0; i < kTile; ++i) column[i] = load(m + (i * kTile + j) * stride);
    filter_gradient_row(column, g);
    for (int i = 0; i < 3; ++i) t[i][j] = g[i];
  }
  for (int i = 0; i < 3; ++i) {
    V g[3];
    filter_gradient_row(t[i], g);
    for (int j = 0; j < 3; ++j) store(taps + (3 * i + j) * tap_stride, g[j]);
  }
}

}  // namespace paceline::engine::cpu::winograd
#include "engine/cpu/kernels/avx512_end.inc"
#endif

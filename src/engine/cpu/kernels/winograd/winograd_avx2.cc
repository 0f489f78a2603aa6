// Winograd's parts for AVX2 with fused multiply-adds.

#include "engine/cpu/kernels/winograd/winograd.h"

#if defined(__x86_64__)
#include "engine/cpu/kernels/avx2_begin.inc"

namespace paceline::engine::cpu::winograd::avx2 {
namespace {

#define PACELINE_INLINE inline __attribute__((always_inline))
using V = __m256;
typedef std::uint32_t U __attribute__((vector_size(32)));
constexpr int kLanes = 8;
constexpr int kRows = 6;  // 12 of 16 registers hold sums

PACELINE_INLINE V load(const float* p) { return _mm256_loadu_ps(p); }
PACELINE_INLINE void store(float* p, V v) { _mm256_storeu_ps(p, v); }
PACELINE_INLINE void stream(float* p, V v) { _mm256_stream_ps(p, v); }
PACELINE_INLINE U words_of_halves(const std::uint16_t* p) {
  return reinterpret_cast<U>(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
PACELINE_INLINE void store_as_halves(std::uint16_t* p, U words) {
  const __m256i w = reinterpret_cast<__m256i>(words);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm_packus_epi32(_mm256_castsi256_si128(w), _mm256_extracti128_si256(w, 1)));
}
PACELINE_INLINE V splat(float x) { return _mm256_set1_ps(x); }
PACELINE_INLINE V add(V a, V b) { return _mm256_add_ps(a, b); }
PACELINE_INLINE V sub(V a, V b) { return _mm256_sub_ps(a, b); }
PACELINE_INLINE V mul(V a, V b) { return _mm256_mul_ps(a, b); }
PACELINE_INLINE V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
/// The compiler cannot fuse the result of inline assembly with another operation.
PACELINE_INLINE V product(V a, V b) {
  V result = mul(a, b);
  asm("" : "+x"(result));
  return result;
}
PACELINE_INLINE V passed(V y, V d) { return _mm256_and_ps(_mm256_cmp_ps(y, V{}, _CMP_NLE_UQ), d); }
PACELINE_INLINE void flush(V v, double* into) {
  _mm256_storeu_pd(into, _mm256_add_pd(_mm256_loadu_pd(into), _mm256_cvtps_pd(_mm256_castps256_ps128(v))));
  _mm256_storeu_pd(into + 4,
                   _mm256_add_pd(_mm256_loadu_pd(into + 4), _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1))));
}
/// v[i][j] <-> v[j][i], as in transpose.inc.
PACELINE_INLINE void transpose(V v[8]) {
#pragma GCC unroll 3
  for (int round = 0; round < 3; ++round) {
    V t[8];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      t[2 * i] = __builtin_shufflevector(v[i], v[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
      t[2 * i + 1] = __builtin_shufflevector(v[i], v[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) v[i] = t[i];
  }
}
PACELINE_INLINE void load_taps(const float* taps, std::int64_t lane_stride, V g[9]) {
#pragma GCC unroll 8
  for (int lane = 0; lane < kLanes; ++lane) g[lane] = load(taps + lane * lane_stride);
  transpose(g);
  float last[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) last[lane] = taps[lane * lane_stride + 8];
  g[8] = load(last);
}

#include "engine/cpu/kernels/winograd/winograd.inc"
//
#include "engine/cpu/kernels/winograd/winograd_multiply.inc"

}  // namespace

extern const WinogradKernels kTable;
constinit const WinogradKernels kTable = table(Isa::avx2);

}  // namespace paceline::engine::cpu::winograd::avx2
#include "engine/cpu/kernels/avx2_end.inc"
#endif

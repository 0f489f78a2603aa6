// Winograd's parts for AVX-512.

#include "engine/cpu/kernels/winograd/winograd.h"

#if defined(__x86_64__)
#include "engine/cpu/kernels/avx512_begin.inc"

namespace paceline::engine::cpu::winograd::avx512 {
namespace {

#define PACELINE_INLINE inline __attribute__((always_inline))
using V = __m512;
typedef std::uint32_t U __attribute__((vector_size(64)));
constexpr int kLanes = 16;
constexpr int kRows = 12;

#include "engine/cpu/kernels/transpose/transpose.inc"

PACELINE_INLINE V load(const float* p) { return _mm512_loadu_ps(p); }
PACELINE_INLINE void store(float* p, V v) { _mm512_storeu_ps(p, v); }
PACELINE_INLINE void stream(float* p, V v) { _mm512_stream_ps(p, v); }
// (With a mask: gcc 12 warns of what the others leave undefined.)
PACELINE_INLINE U words_of_halves(const std::uint16_t* p) {
  return reinterpret_cast<U>(
      _mm512_maskz_cvtepu16_epi32(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
}
PACELINE_INLINE void store_as_halves(std::uint16_t* p, U words) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_maskz_cvtepi32_epi16(0xffff, reinterpret_cast<__m512i>(words)));
}
PACELINE_INLINE V splat(float x) { return _mm512_set1_ps(x); }
PACELINE_INLINE V add(V a, V b) { return _mm512_add_ps(a, b); }
PACELINE_INLINE V sub(V a, V b) { return _mm512_sub_ps(a, b); }
PACELINE_INLINE V mul(V a, V b) { return _mm512_mul_ps(a, b); }
PACELINE_INLINE V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
/// The compiler does not fuse a product with explicit rounding.
PACELINE_INLINE V product(V a, V b) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return _mm512_maskz_mul_round_ps(0xffff, a, b, kNearest);
}
PACELINE_INLINE V passed(V y, V d) { return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(y, V{}, _CMP_NLE_UQ), d); }
/// (The intrinsics for halves make gcc 12 warn of its own header.)
PACELINE_INLINE void flush(V v, double* into) {
  const auto low = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7);
  const auto high = __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
  _mm512_storeu_pd(into, _mm512_loadu_pd(into) + __builtin_convertvector(low, __m512d));
  _mm512_storeu_pd(into + 8, _mm512_loadu_pd(into + 8) + __builtin_convertvector(high, __m512d));
}
PACELINE_INLINE void load_taps(const float* taps, std::int64_t lane_stride, V g[9]) {
  constexpr __mmask16 kTaps = 0x1ff;  // of the 16 floats from a filter's first on
  V filters[kLanes];
#pragma GCC unroll 16
  for (int lane = 0; lane < kLanes; ++lane)
    filters[lane] = _mm512_maskz_loadu_ps(kTaps, taps + lane * lane_stride);
  transpose(filters);
#pragma GCC unroll 9
  for (int t = 0; t < 9; ++t) g[t] = filters[t];
}

#include "engine/cpu/kernels/winograd/winograd.inc"
//
#include "engine/cpu/kernels/winograd/winograd_multiply.inc"

}  // namespace

extern const WinogradKernels kTable;
constinit const WinogradKernels kTable = table(Isa::avx512);

}  // namespace paceline::engine::cpu::winograd::avx512
#include "engine/cpu/kernels/avx512_end.inc"
#endif

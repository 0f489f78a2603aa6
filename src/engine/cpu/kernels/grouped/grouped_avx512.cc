// Convolutions with narrow groups for AVX-512.

#include "engine/cpu/kernels/grouped/grouped.h"

#if defined(__x86_64__)
#include "engine/cpu/kernels/avx512_begin.inc"

namespace paceline::engine::cpu::grouped::avx512 {
namespace {

#define PACELINE_INLINE inline __attribute__((always_inline))
using V = __m512;
constexpr int kLanes = 16;
constexpr int kStrip = 14;                 ///< outputs whose sums are in registers: a divisor of usual widths
constexpr int kSumStrip = 7;               ///< outputs whose gradients are in registers
constexpr int kSumRows(int) { return 3; }  ///< the sums of so many rows of a kernel are in registers

PACELINE_INLINE V zero() { return _mm512_setzero_ps(); }
PACELINE_INLINE V load(const float* p) { return _mm512_loadu_ps(p); }
PACELINE_INLINE void store(float* p, V v) { _mm512_storeu_ps(p, v); }
PACELINE_INLINE V add(V a, V b) { return _mm512_add_ps(a, b); }
PACELINE_INLINE V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }

/// The first `count` lanes of an image, the others zero, and back.
PACELINE_INLINE __mmask16 first_lanes(int count) { return static_cast<__mmask16>((1u << count) - 1); }
PACELINE_INLINE V load_image(const float* p, int count) {
  return _mm512_maskz_loadu_ps(first_lanes(count), p);
}
PACELINE_INLINE V load_image(const std::uint16_t* p, int count) {
  const __m256i halves = _mm256_maskz_loadu_epi16(first_lanes(count), p);
  return _mm512_castsi512_ps(
      _mm512_maskz_slli_epi32(0xffff, _mm512_maskz_cvtepu16_epi32(0xffff, halves), 16));
}
PACELINE_INLINE void store_image(float* p, V v, int count) {
  _mm512_mask_storeu_ps(p, first_lanes(count), v);
}
/// Rounds to nearest even; NaN stays NaN.
PACELINE_INLINE void store_image(std::uint16_t* p, V v, int count) {
  constexpr __mmask16 kAll = 0xffff;
  const __m512i bits = _mm512_castps_si512(v);
  const __m512i high = _mm512_maskz_srli_epi32(kAll, bits, 16);
  const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
  const __m512i up = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __m512i kept = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
  const __m512i words = _mm512_mask_mov_epi32(_mm512_maskz_srli_epi32(kAll, up, 16),
                                              _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), kept);
  _mm256_mask_storeu_epi16(p, first_lanes(count), _mm512_maskz_cvtepi32_epi16(kAll, words));
}

/// Each lane gets the channel number `copy` of its group of `copies`.
struct Spread {
  __m512i from;
  Spread() = default;
  PACELINE_INLINE Spread(int copies, int copy) {
    std::int32_t lanes[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] = lane / copies * copies + copy;
    from = _mm512_loadu_si512(lanes);
  }
  PACELINE_INLINE V operator()(V v) const { return _mm512_maskz_permutexvar_ps(0xffff, from, v); }
};

#include "engine/cpu/kernels/grouped/grouped.inc"

}  // namespace

extern const GroupedKernels kTable;
constinit const GroupedKernels kTable = table(Isa::avx512);

}  // namespace paceline::engine::cpu::grouped::avx512
#include "engine/cpu/kernels/avx512_end.inc"
#endif

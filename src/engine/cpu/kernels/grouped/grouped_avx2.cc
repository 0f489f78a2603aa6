// Convolutions with narrow groups for AVX2 with fused multiply-adds.

#include "engine/cpu/kernels/grouped/grouped.h"

#if defined(__x86_64__)
#include "engine/cpu/kernels/avx2_begin.inc"

namespace paceline::engine::cpu::grouped::avx2 {
namespace {

#define PACELINE_INLINE inline __attribute__((always_inline))
using V = __m256;
constexpr int kLanes = 8;
constexpr int kStrip = 7;     ///< outputs whose sums are in registers: a divisor of usual widths
constexpr int kSumStrip = 4;  ///< outputs whose gradients are in registers
constexpr int kSumRows(int kernel) {
  return kernel == 3 ? 3 : kernel == 5 ? 2 : 1;
}  ///< the sums of so many rows of a kernel are in registers

PACELINE_INLINE V zero() { return _mm256_setzero_ps(); }
PACELINE_INLINE V load(const float* p) { return _mm256_loadu_ps(p); }
PACELINE_INLINE void store(float* p, V v) { _mm256_storeu_ps(p, v); }
PACELINE_INLINE V add(V a, V b) { return _mm256_add_ps(a, b); }
PACELINE_INLINE V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }

/// The first `count` lanes of an image, the others zero, and back.
PACELINE_INLINE __m256i first_lanes(int count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
PACELINE_INLINE V load_image(const float* p, int count) {
  return count == kLanes ? load(p) : _mm256_maskload_ps(p, first_lanes(count));
}
PACELINE_INLINE V load_image(const std::uint16_t* p, int count) {
  std::uint16_t part[kLanes] = {};
  if (count < kLanes) {
    for (int i = 0; i < count; ++i) part[i] = p[i];
    p = part;
  }
  const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}
PACELINE_INLINE void store_image(float* p, V v, int count) {
  count == kLanes ? store(p, v) : _mm256_maskstore_ps(p, first_lanes(count), v);
}
/// Rounds to nearest even; NaN stays NaN.
PACELINE_INLINE void store_image(std::uint16_t* p, V v, int count) {
  const __m256i bits = _mm256_castps_si256(v), high = _mm256_srli_epi32(bits, 16);
  const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
  const __m256i up = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i kept = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
  const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  const __m256i words = _mm256_blendv_epi8(_mm256_srli_epi32(up, 16), kept, is_nan);
  const __m128i halves = _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  if (count == kLanes) return _mm_storeu_si128(reinterpret_cast<__m128i*>(p), halves);
  std::uint16_t part[kLanes];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(part), halves);
  for (int i = 0; i < count; ++i) p[i] = part[i];
}

/// Each lane gets the channel number `copy` of its group of `copies`.
struct Spread {
  __m256i from;
  Spread() = default;
  PACELINE_INLINE Spread(int copies, int copy) {
    std::int32_t lanes[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] = lane / copies * copies + copy;
    from = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lanes));
  }
  PACELINE_INLINE V operator()(V v) const { return _mm256_permutevar8x32_ps(v, from); }
};

#include "engine/cpu/kernels/grouped/grouped.inc"

}  // namespace

extern const GroupedKernels kTable;
constinit const GroupedKernels kTable = table(Isa::avx2);

}  // namespace paceline::engine::cpu::grouped::avx2
#include "engine/cpu/kernels/avx2_end.inc"
#endif

// AVX-512 only.

#include "engine/cpu/kernels/transpose/transpose.h"

#if defined(__x86_64__)
#include "engine/cpu/kernels/avx512_begin.inc"

namespace paceline::engine::cpu {
namespace {

#define PACELINE_INLINE inline __attribute__((always_inline))
using V = __m512;
#include "engine/cpu/kernels/transpose/transpose.inc"

PACELINE_INLINE void load_turned(const float* const from[16], V v[16]) {
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) v[i] = _mm512_loadu_ps(from[i]);
  transpose(v);
}

}  // namespace

void transpose_tile(const float* const from[16], float* const to[16]) {
  V v[16];
  load_turned(from, v);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) _mm512_stream_ps(to[i], v[i]);
}

void transpose_near_tile(const float* const from[16], float* const to[16]) {
  V v[16];
  load_turned(from, v);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) _mm512_storeu_ps(to[i], v[i]);
}

}  // namespace paceline::engine::cpu
#include "engine/cpu/kernels/avx512_end.inc"

namespace paceline::engine::cpu {
void end_streams() { __builtin_ia32_sfence(); }
}  // namespace paceline::engine::cpu
#endif

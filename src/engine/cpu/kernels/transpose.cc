// AVX-512 only. Like the other kernels of one instruction set, nothing that other files share is compiled
// behind the pragma.

#include "engine/cpu/kernels/transpose.h"

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma,prefer-vector-width=512")
#include <immintrin.h>
#if defined(__clang__)  // knows no GCC target; the fuzz targets are built with it
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma"))), \
                             apply_to = function)
#endif

namespace paceline::engine::cpu {
namespace {

#define PACELINE_INLINE inline __attribute__((always_inline))
using V = __m512;
#include "engine/cpu/kernels/transpose.inc"

}  // namespace

void transpose_tile(const float* const from[16], float* const to[16]) {
  V v[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) v[i] = _mm512_loadu_ps(from[i]);
  transpose(v);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) _mm512_stream_ps(to[i], v[i]);
}

void end_streams() { _mm_sfence(); }

}  // namespace paceline::engine::cpu
#if defined(__clang__)
#pragma clang attribute pop
#endif
#pragma GCC pop_options
#endif

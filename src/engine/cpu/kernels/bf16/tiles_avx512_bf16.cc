// Tiles by AVX512-BF16's vdpbf16ps; see tiles_amx.cc for the pragma.

#include "engine/cpu/kernels/bf16/tiles.h"

#pragma GCC target("avx512bf16,avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,prefer-vector-width=512")
#pragma GCC optimize("O2", "no-math-errno", "no-trapping-math", "fp-contract=off")
#pragma GCC diagnostic ignored "-Wpsabi"  // vectors are only passed to functions that are inlined
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512bf16,avx512f,avx512bw,avx512dq,avx512vl,fma"))), \
                             apply_to = function)
#endif

namespace paceline::engine::cpu::tiles::avx512_bf16 {
namespace {

#define PACELINE_HAS_AVX512
#define PACELINE_ROUNDS_TO_BF16
#include "engine/cpu/kernels/vector.inc"

PACELINE_INLINE V dot(V sums, U a, U b) {
  return reinterpret_cast<V>(_mm512_dpbf16_ps(reinterpret_cast<__m512>(sums), reinterpret_cast<__m512bh>(a),
                                              reinterpret_cast<__m512bh>(b)));
}

#include "engine/cpu/kernels/bf16/tile_vectors.inc"
//
#include "engine/cpu/kernels/bf16/tiles.inc"

}  // namespace

extern const TileKernels kTable;
constinit const TileKernels kTable = table<Vectors>("avx512-bf16");

}  // namespace paceline::engine::cpu::tiles::avx512_bf16

#if defined(__clang__)
#pragma clang attribute pop
#endif
